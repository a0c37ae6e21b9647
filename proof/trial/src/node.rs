//! A simulated node: it runs nothing, and reports pods as running.

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

/// What the node reports for a pod.
#[derive(Debug, Clone, Copy)]
pub enum PodBehavior {
    /// It runs, and is ready after this time.
    Ready(Duration),
    /// It runs, and never becomes ready.
    Unready,
    /// It exits with this code after this time.
    Exits(i32, Duration),
}

/// Chooses the behaviour of a pod by its label `behavior`; pods without one are ready after a second.
#[derive(Debug, Clone, Default)]
pub struct Node {
    behaviors: HashMap<&'static str, PodBehavior>,
    bound: bool,
    since: Option<u64>,
}

impl Node {
    /// Sets the behaviour of pods with this label.
    pub fn behavior(mut self, label: &'static str, behavior: PodBehavior) -> Self {
        self.behaviors.insert(label, behavior);
        self
    }

    /// Runs only pods that are bound to a node.
    pub fn bound(mut self) -> Self {
        self.bound = true;
        self
    }

    /// Also runs pods that existed before the node started, if they were written after this
    /// revision.
    pub(crate) fn since(mut self, revision: u64) -> Self {
        self.since = Some(revision);
        self
    }

    pub(crate) async fn run(self, pocket: Pocket, client: Client, clock: Clock) {
        let view = pocket.view(None);
        let mut cursor = view.watch("/pods", self.since.unwrap_or_else(|| view.revision()));
        let mut running_pods: HashMap<Arc<str>, String> = HashMap::new();
        let mut tasks = JoinSet::new();
        loop {
            for event in latest(cursor.take().unwrap_or_default()) {
                if event.change == Change::Deleted {
                    running_pods.remove(&event.path);
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
                if running_pods.get(&event.path) == Some(&uid) {
                    continue;
                }
                let pod: Pod = serde_json::from_slice(event.object.json()).unwrap_or_default();
                if pod.is_over() || self.bound && pod.spec.node_name.is_none() {
                    continue;
                }
                running_pods.insert(event.path.clone(), uid.clone());
                let label = metadata.labels.get("fate").and_then(Value::as_str);
                let behavior = label.and_then(|label| self.behaviors.get(label));
                let usual = PodBehavior::Ready(Duration::from_secs(1));
                let behavior = behavior.copied().unwrap_or(usual);
                tasks.spawn(report_pod(client.clone(), path, uid, behavior, clock));
            }
            tokio::select! {
                () = cursor.changed() => {}
                Some(_) = tasks.join_next() => {}
            }
        }
    }
}

/// The latest event of each pod. Earlier ones do not concern the node, and a pod that had finished
/// before the node started must not run again.
fn latest(events: Vec<Arc<Event>>) -> Vec<Arc<Event>> {
    let last: HashMap<_, _> = events
        .iter()
        .map(|event| (event.path.clone(), event.revision()))
        .collect();
    let is_last = |event: &Arc<Event>| last.get(&event.path) == Some(&event.revision());
    events.into_iter().filter(is_last).collect()
}

/// The part of a pod that the node reads.
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
    /// Whether it has finished; such pods may exist before the node starts.
    fn is_over(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }
}

async fn report_pod(
    client: Client,
    path: String,
    uid: String,
    behavior: PodBehavior,
    clock: Clock,
) {
    let report = async |status: Value| {
        let patch = json!({"metadata": {"uid": uid}, "status": status});
        let _ = send(&client, "PATCH", &format!("{path}/status"), &patch).await;
    };
    let start = clock.now();
    match behavior {
        PodBehavior::Unready => report(running(start, false, start)).await,
        PodBehavior::Ready(after) => {
            report(running(start, false, start)).await;
            clock.sleep(after).await;
            report(running(start, true, clock.now())).await;
        }
        PodBehavior::Exits(code, after) => {
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
