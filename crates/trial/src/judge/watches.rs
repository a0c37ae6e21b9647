//! O9: every watch tells everything, in order and once.

use std::sync::Arc;

use neap_pocket::store::Event;

use super::{Oracle, Violation};
use crate::seam::Stream;

/// What is wrong with watches that went on until the end, when all up to `until` must have been told,
/// and with those that did not.
pub(crate) fn streams(streams: &[Stream], history: &[Arc<Event>], until: u64) -> Vec<Violation> {
    streams
        .iter()
        .filter_map(|stream| {
            let problem = problem(stream, history, until)?;
            let text = format!("a watch of {}: {problem}", stream.resource);
            Some(Violation::new(Oracle::Watch, &stream.resource, text))
        })
        .collect()
}

fn problem(stream: &Stream, history: &[Arc<Event>], until: u64) -> Option<String> {
    let mut pairs = stream.told.iter().zip(stream.told.iter().skip(1));
    if let Some((first, second)) = pairs.find(|(first, second)| first >= second) {
        return Some(format!("told of {second} after {first}"));
    }
    // Of a choice of objects nobody here knows what belongs to it.
    let after = stream.after?;
    let last = stream.told.last().copied().unwrap_or_default();
    // One that has ended may have ended before it could tell the rest.
    let last = if stream.open { last.max(until) } else { last };
    let happened = history.iter().filter(|event| {
        *event.resource == *stream.resource
            && (after + 1..=last).contains(&event.revision())
            && is_within(&event.path, &stream.namespace)
    });
    let happened: Vec<u64> = happened.map(|event| event.revision()).collect();
    (happened != stream.told)
        .then(|| format!("told of {:?} where {happened:?} happened", stream.told))
}

fn is_within(path: &str, namespace: &str) -> bool {
    namespace.is_empty() || path.split('/').next() == Some(namespace)
}

#[cfg(test)]
mod tests {
    use kube::Client;
    use serde_json::json;

    use super::*;
    use crate::{Ground, run::send};

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_goes_on_has_told_everything() {
        let ground = Ground::prepare().await.expect("a server");
        let pocket = ground.copy(1).await.expect("a copy");
        let user = Client::new(pocket.service(), "default");
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let maps = "/api/v1/namespaces/default/configmaps";
        send(&user, "POST", maps, &map).await.expect("a map");
        let mut history = pocket.store().export_history();
        history.retain(|event| event.revision() > ground.revision());
        let last = history.last().map_or(0, |event| event.revision());
        let found = |told: &[u64], open: bool| {
            let stream = Stream {
                resource: "/configmaps".to_owned(),
                namespace: String::new(),
                after: Some(ground.revision()),
                told: told.to_vec(),
                open,
            };
            streams(&[stream], &history, last).len()
        };
        assert_eq!(found(&[last], true), 0);
        assert_eq!(found(&[], true), 1, "it was silent");
        assert_eq!(found(&[], false), 0, "it had ended");
        assert_eq!(found(&[last, last], true), 1, "it told twice");
    }
}
