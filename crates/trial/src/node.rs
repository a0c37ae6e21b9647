//! A node that runs nothing and says that it does.

use std::{collections::HashMap, sync::Arc, time::Duration};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::Client;
use neap_kit::clock::Clock;
use neap_pocket::{
    Pocket,
    store::{Change, Event},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::run::send;

/// What becomes of pods.
#[derive(Debug, Clone, Copy)]
pub enum Fate {
    /// Runs and is ready after this time.
    Ready(Duration),
    /// Runs and is never ready.
    Unready,
    /// Ends with this exit code after this time.
    Ends(i32, Duration),
}

/// Pods by the label `fate`, which says what becomes of them; all others are ready after a second.
#[derive(Debug, Clone, Default)]
pub struct Node {
    fates: HashMap<&'static str, Fate>,
    bound: bool,
    since: Option<u64>,
}

impl Node {
    /// What becomes of pods with this label.
    pub fn fate(mut self, label: &'static str, fate: Fate) -> Self {
        self.fates.insert(label, fate);
        self
    }

    /// Runs only what was bound to a node.
    pub fn bound(mut self) -> Self {
        self.bound = true;
        self
    }

    /// Also runs what was there before it began, if it was written after this revision.
    pub(crate) fn since(mut self, revision: u64) -> Self {
        self.since = Some(revision);
        self
    }

    pub(crate) async fn run(self, pocket: Pocket, client: Client, clock: Clock) {
        let view = pocket.view(None);
        let mut cursor = view.watch("/pods", self.since.unwrap_or_else(|| view.revision()));
        let mut lives: HashMap<Arc<str>, String> = HashMap::new();
        let mut tasks = JoinSet::new();
        loop {
            for event in latest(cursor.take().unwrap_or_default()) {
                if event.change == Change::Deleted {
                    lives.remove(&event.path);
                    continue;
                }
                let Some((namespace, name)) = event.path.split_once('/') else {
                    continue;
                };
                let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
                let metadata = event.object.metadata();
                let uid = metadata.uid.to_string();
                if metadata.deletion_timestamp.is_some() {
                    let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
                    let _ = send(&client, "DELETE", &path, &options).await;
                    continue;
                }
                if lives.get(&event.path) == Some(&uid) {
                    continue;
                }
                let pod: Pod = serde_json::from_slice(event.object.json()).unwrap_or_default();
                if pod.is_over() || self.bound && pod.spec.node_name.is_none() {
                    continue;
                }
                lives.insert(event.path.clone(), uid.clone());
                let label = metadata.labels.get("fate").and_then(Value::as_str);
                let fate = label.and_then(|label| self.fates.get(label));
                let usual = Fate::Ready(Duration::from_secs(1));
                let fate = fate.copied().unwrap_or(usual);
                tasks.spawn(live(client.clone(), path, uid, fate, clock));
            }
            tokio::select! {
                () = cursor.changed() => {}
                Some(_) = tasks.join_next() => {}
            }
        }
    }
}

/// What became of each pod by now: what it was before is no business of the node, and a pod that was
/// over before the node began must not run again.
fn latest(events: Vec<Arc<Event>>) -> Vec<Arc<Event>> {
    let last: HashMap<_, _> = events
        .iter()
        .map(|event| (event.path.clone(), event.revision()))
        .collect();
    let is_last = |event: &Arc<Event>| last.get(&event.path) == Some(&event.revision());
    events.into_iter().filter(is_last).collect()
}

/// What a node asks of a pod.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Pod {
    spec: Spec,
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    phase: String,
}

impl Pod {
    /// Such a pod is there before the node is.
    fn is_over(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }
}

async fn live(client: Client, path: String, uid: String, fate: Fate, clock: Clock) {
    let report = async |status: Value| {
        let patch = json!({"metadata": {"uid": uid}, "status": status});
        let _ = send(&client, "PATCH", &format!("{path}/status"), &patch).await;
    };
    let start = clock.now();
    match fate {
        Fate::Unready => report(running(start, false, start)).await,
        Fate::Ready(after) => {
            report(running(start, false, start)).await;
            clock.sleep(after).await;
            report(running(start, true, clock.now())).await;
        }
        Fate::Ends(code, after) => {
            report(running(start, true, start)).await;
            clock.sleep(after).await;
            report(ended(code, start, clock.now())).await;
        }
    }
}

fn running(start: Timestamp, ready: bool, since: Timestamp) -> Value {
    json!({
        "phase": "Running",
        "startTime": Time(start),
        "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }, "lastTransitionTime": Time(since)}],
        "containerStatuses": [{
            "name": "main", "image": "app", "imageID": "", "ready": ready, "started": true, "restartCount": 0,
            "state": {"running": {"startedAt": Time(start)}},
        }],
    })
}

fn ended(code: i32, start: Timestamp, end: Timestamp) -> Value {
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    json!({
        "phase": phase,
        "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted", "lastTransitionTime": Time(end)}],
        "containerStatuses": [{
            "name": "main", "image": "app", "imageID": "", "ready": false, "started": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": code, "startedAt": Time(start), "finishedAt": Time(end)}},
        }],
    })
}
