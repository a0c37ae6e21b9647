//! Watches that are open on both servers while other calls go on, and their events.

use std::{collections::HashSet, time::Duration};

use anyhow::{Context, Result};
use neap_load::client::Watch;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    compare::{Difference, values},
    kinds::Kind,
};

/// Time for a server to deliver an event.
const EVENT_TIMEOUT: Duration = Duration::from_secs(10);

/// A watch that is open on both servers.
#[derive(Debug)]
pub struct Stream {
    pub kind: Kind,
    pub namespace: String,
    /// The path it was opened with, with references.
    pub path: String,
    /// The step after which it is read.
    pub until: usize,
    pub(crate) reference: Watch,
    pub(crate) pocket: Watch,
}

/// An object that ends a stream: both servers must deliver it.
pub fn sentinel(kind: &Kind, name: &str) -> Value {
    let mut value = kind.seeds.first().cloned().unwrap_or_else(|| json!({}));
    value["apiVersion"] = kind.api_version.clone().into();
    value["kind"] = kind.name.clone().into();
    value["metadata"] = json!({"name": name, "labels": {"app": "web"}});
    value
}

/// Reads events until the one about `name`.
pub async fn read(watch: &mut Watch, name: &str) -> Result<Vec<Value>> {
    let mut events = Vec::new();
    loop {
        let next = timeout(EVENT_TIMEOUT, watch.next());
        let event = next.await.context("the last event did not come")??;
        let Some(event) = event else {
            return Ok(events);
        };
        let last = event["object"]["metadata"]["name"] == name;
        events.push(event);
        if last {
            return Ok(events);
        }
    }
}

/// The compared events: without those about retired objects, and without bookmarks, which come at
/// any time, except the one that ends the initial events.
pub(crate) fn compared(events: Vec<Value>, retired: &HashSet<String>) -> Vec<Value> {
    let keeps = |event: &Value| {
        let metadata = &event["object"]["metadata"];
        let ends = metadata["annotations"]["k8s.io/initial-events-end"] == "true";
        let name = metadata["name"].as_str().unwrap_or_default();
        !retired.contains(name)
            && name != "kube-root-ca.crt"
            && (event["type"] != "BOOKMARK" || ends)
    };
    events.into_iter().filter(keeps).collect()
}

/// The differences between two streams of masked events.
pub fn differences(reference: &[Value], pocket: &[Value]) -> Vec<Difference> {
    let mut out = Vec::new();
    let heads = |events: &[Value]| -> Vec<Value> {
        let head = |event: &Value| json!([event["type"], event["object"]["metadata"]["name"]]);
        events.iter().map(head).collect()
    };
    let (theirs, ours) = (heads(reference), heads(pocket));
    if theirs != ours {
        out.push(Difference {
            field: "events".into(),
            rule: if theirs.len() == ours.len() {
                "in another order".into()
            } else {
                "number".into()
            },
            reference: theirs.into(),
            pocket: ours.into(),
        });
        return out;
    }
    for (theirs, ours) in reference.iter().zip(pocket) {
        values("", theirs, ours, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookmarks_and_lost_objects_are_left_out() {
        let event =
            |ty: &str, name: &str| json!({"type": ty, "object": {"metadata": {"name": name}}});
        let mut end = event("BOOKMARK", "");
        end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] = "true".into();
        let events = vec![
            event("ADDED", "a"),
            event("ADDED", "b"),
            event("BOOKMARK", ""),
            end.clone(),
        ];
        let kept = compared(events, &HashSet::from(["b".to_owned()]));
        assert_eq!(kept, [event("ADDED", "a"), end]);
    }
}
