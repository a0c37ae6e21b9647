//! A node that runs nothing and reports that it does.

use std::{collections::BTreeMap, pin::pin, time::Duration};

use futures::StreamExt;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
    runtime::{
        WatchStreamExt,
        watcher::{Config, watcher},
    },
};
use neap_kit::clock::Clock;
use serde_json::{Value, json};

/// How a pod behaves.
#[derive(Debug, Clone, Copy)]
pub enum PodBehavior {
    /// Runs and is ready after this time.
    Ready(Duration),
    /// Runs and is never ready.
    Unready,
    /// Ends with this exit code after this time.
    Ends(i32, Duration),
}

/// Pods behave as their label `behavior` says; pods without it are ready after a second.
#[derive(Debug, Default)]
pub struct Kubelet {
    behaviors: BTreeMap<String, PodBehavior>,
}

impl Kubelet {
    /// Pods whose label `behavior` has this value behave like this.
    pub fn behavior(mut self, label: &str, behavior: PodBehavior) -> Self {
        self.behaviors.insert(label.to_owned(), behavior);
        self
    }

    pub(crate) async fn run(self, client: Client, clock: Clock) {
        let all: Api<Pod> = Api::all(client.clone());
        let mut pods = pin!(watcher(all, Config::default()).applied_objects());
        let mut begun = std::collections::HashSet::new();
        let mut lives = tokio::task::JoinSet::new();
        while let Some(pod) = pods.next().await {
            let pod = pod.unwrap();
            let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap());
            if pod.metadata.deletion_timestamp.is_some() {
                let _ = api
                    .delete(&pod.name_any(), &DeleteParams::default().grace_period(0))
                    .await;
            } else if begun.insert(pod.uid()) {
                let label = pod.labels().get("behavior").cloned().unwrap_or_default();
                let usual = PodBehavior::Ready(Duration::from_secs(1));
                let behavior = self.behaviors.get(&label).copied().unwrap_or(usual);
                lives.spawn(simulate(api, pod, behavior, clock));
            }
        }
    }
}

async fn simulate(api: Api<Pod>, pod: Pod, behavior: PodBehavior, clock: Clock) {
    let name = pod.name_any();
    let report = async |status: Value| {
        let patch = Patch::Merge(json!({"status": status}));
        let _ = api
            .patch_status(&name, &PatchParams::default(), &patch)
            .await;
    };
    let start = clock.now();
    match behavior {
        PodBehavior::Unready => report(running(start, false, start)).await,
        PodBehavior::Ready(after) => {
            report(running(start, false, start)).await;
            clock.sleep(after).await;
            report(running(start, true, clock.now())).await;
        }
        PodBehavior::Ends(code, after) => {
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
