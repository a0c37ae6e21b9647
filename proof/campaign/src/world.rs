//! Workloads for the controllers of `world`.

mod again;
pub(crate) mod claim;
pub(crate) mod cron_job;
pub(crate) mod daemon_set;
mod deployment;
pub(crate) mod disruption_budget;
pub(crate) mod job;
pub(crate) mod node_taints;
mod replica_set;
mod scheduler;
pub(crate) mod service;
pub(crate) mod stateful_set;

use neap_trial::Workload;
use serde_json::{Value, json};

pub(crate) fn workloads() -> Vec<Workload> {
    vec![
        again::workload(),
        claim::workload(),
        cron_job::workload(),
        daemon_set::workload(),
        deployment::workload(),
        disruption_budget::workload(),
        job::workload(),
        node_taints::workload(),
        replica_set::workload(),
        scheduler::workload(),
        service::workload(),
        stateful_set::workload(),
    ]
}

/// A Deployment or ReplicaSet called `web`.
pub(crate) fn web(kind: &str, replicas: u32) -> Value {
    let container = json!({"name": "main", "image": "app:1"});
    json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    })
}
