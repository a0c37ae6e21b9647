//! Two simulated nodes, which report pods as running, and a scheduler that binds pods to them.
//!
//! The behaviour of a pod is in its annotation `play`:
//! - `ready` (the default): runs, and is ready after a second;
//! - `unready`: runs and is never ready; `waiting`: is bound and never runs;
//! - `ends CODE`: runs for a second and exits; `ends CODE index N`: so if it has this index of its
//!   Job, and otherwise exits with 0; `ends CODE once`: so if it is the first pod of its owner, and
//!   otherwise exits with 0.

use std::{collections::HashSet, pin::pin, sync::Arc, time::Duration};

use anyhow::Result;
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Client, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{Config, watcher},
    },
};
use neap_kit::clock::Clock;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::api::Api;

/// The nodes, and their zones.
pub const NODES: [(&str, &str); 2] = [("one", "east"), ("two", "west")];
const SECOND: Duration = Duration::from_secs(1);
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Creates the nodes.
pub async fn register(client: &Client) -> Result<()> {
    let api = Api::new(client, "");
    for (name, zone) in NODES {
        let labels = json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone});
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        });
        api.create(&node).await?;
        let room = json!({"pods": "1000", "cpu": "64", "memory": "64Gi"});
        let ready = json!([{"type": "Ready", "status": "True", "reason": "Played"}]);
        let status = json!({"capacity": room, "allocatable": room, "conditions": ready});
        api.patch(
            "Node",
            &format!("{name}/status"),
            &json!({"status": status}),
        )
        .await?;
        api.patch("Node", name, &json!({"spec": {"taints": null}}))
            .await?;
    }
    Ok(())
}

/// Runs them until it is dropped.
pub async fn run(client: Client, clock: Clock) -> Result<()> {
    let all: kube::Api<Pod> = kube::Api::all(client.clone());
    let mut pods = pin!(watcher(all, Config::default()).applied_objects());
    let (mut begun, mut ended) = (HashSet::new(), HashSet::new());
    let mut lives = JoinSet::new();
    let played = Arc::new(Mutex::new(HashSet::new()));
    while let Some(pod) = pods.try_next().await? {
        let namespace = pod.namespace().unwrap_or_default();
        let api = Api::new(&client, &namespace);
        if pod.metadata.deletion_timestamp.is_some() {
            if ended.insert(pod.uid()) {
                lives.spawn(end(api, pod));
            }
        } else if begun.insert(pod.uid()) {
            let life = PodLife {
                api,
                clock,
                address: format!("10.9.{}.{}", begun.len() / 250, begun.len() % 250 + 1),
                played: played.clone(),
            };
            lives.spawn(life.run_pod(pod));
        }
    }
    Ok(())
}

/// It is removed at once.
async fn end(api: Api, pod: Pod) {
    let now = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid()}});
    let _ = api.delete("Pod", &pod.name_any(), &now).await;
}

struct PodLife {
    api: Api,
    clock: Clock,
    address: String,
    /// The owners of which a pod has run.
    played: Arc<Mutex<HashSet<String>>>,
}

impl PodLife {
    /// A request is refused only if the pod is gone.
    async fn run_pod(self, pod: Pod) {
        let name = pod.name_any();
        let play = pod.annotations().get("play").cloned().unwrap_or_default();
        let play: Vec<&str> = play.split(' ').collect();
        let bound = self.api.bind(&name, node_for(&pod)).await;
        if bound.is_err() || play[0] == "waiting" {
            return;
        }
        let ends = play.get(1).and_then(|code| code.parse().ok());
        let ends = ends.map(|code: i32| self.code(&pod, code, &play[2..]));
        self.report(&name, self.running(ends.is_some())).await;
        if play[0] == "unready" {
            return;
        }
        self.clock.sleep(SECOND).await;
        let next = ends.map_or_else(|| self.running(true), |code| self.ended(code));
        self.report(&name, next).await;
    }

    fn code(&self, pod: &Pod, code: i32, when: &[&str]) -> i32 {
        let fits = match when {
            ["index", index] => pod.annotations().get(INDEX).is_some_and(|it| it == index),
            ["once"] => {
                let owner = pod
                    .owner_references()
                    .first()
                    .map(|owner| owner.uid.clone());
                self.played.lock().insert(owner.unwrap_or_default())
            }
            _ => true,
        };
        if fits { code } else { 0 }
    }

    async fn report(&self, pod: &str, status: Value) {
        let (what, patch) = (format!("{pod}/status"), json!({"status": status}));
        let _ = self.api.patch("Pod", &what, &patch).await;
    }

    fn now(&self) -> String {
        self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    fn running(&self, ready: bool) -> Value {
        let (now, is) = (self.now(), if ready { "True" } else { "False" });
        json!({
            "phase": "Running", "startTime": now,
            "podIP": self.address, "podIPs": [{"ip": self.address}],
            "conditions": [{"type": "Ready", "status": is, "lastTransitionTime": now}],
            "containerStatuses": [{
                "name": "main", "image": "app", "imageID": "", "ready": ready, "started": true,
                "restartCount": 0, "state": {"running": {"startedAt": now}},
            }],
        })
    }

    fn ended(&self, code: i32) -> Value {
        let now = self.now();
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let end = json!({"exitCode": code, "startedAt": now, "finishedAt": now});
        json!({
            "phase": phase,
            "conditions": [{
                "type": "Ready", "status": "False", "reason": "PodCompleted", "lastTransitionTime": now,
            }],
            "containerStatuses": [{
                "name": "main", "image": "app", "imageID": "", "ready": false, "started": false,
                "restartCount": 0, "state": {"running": null, "terminated": end},
            }],
        })
    }
}

/// The node that a pod requests, or the first.
fn node_for(pod: &Pod) -> &str {
    let asked = pod.spec.as_ref().and_then(|spec| {
        let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
        let required = affinity
            .required_during_scheduling_ignored_during_execution
            .as_ref()?;
        let fields = required
            .node_selector_terms
            .first()?
            .match_fields
            .as_ref()?;
        fields.first()?.values.as_ref()?.first()
    });
    asked.map_or(NODES[0].0, String::as_str)
}
