//! A simulated node and scheduler: pods are bound to it and reported as running.
//!
//! Controllers come to rest only if pods are bound, become ready, succeed if they belong to a Job,
//! and disappear when they are deleted.

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::api::Api;

pub(super) const NAME: &str = "pier";
/// Interval of its heartbeats in seconds; the controllers give it up after fifty.
const HEARTBEAT_SECONDS: u64 = 10;
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// A running node; it stops when dropped.
#[derive(Debug)]
pub(super) struct Node {
    tasks: JoinSet<Result<()>>,
}

impl Node {
    /// Registers it and starts to handle pods.
    pub(super) async fn start(api: &Api) -> Result<Self> {
        let object = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": NAME, "labels": {"kubernetes.io/hostname": NAME}},
        });
        api.create("/api/v1/nodes", &object).await?;
        heartbeat(api).await?;
        let mut tasks = JoinSet::new();
        let of_pods = api.clone();
        tasks.spawn(async move { pods(&of_pods).await });
        let of_life = api.clone();
        tasks.spawn(async move { live(&of_life).await });
        Ok(Self { tasks })
    }

    /// Fails if it has stopped.
    pub(super) fn must_run(&mut self) -> Result<()> {
        match self.tasks.try_join_next() {
            Some(ended) => ended?.context("the node cannot go on"),
            None => Ok(()),
        }
    }
}

async fn live(api: &Api) -> Result<()> {
    let every = std::time::Duration::from_secs(HEARTBEAT_SECONDS);
    loop {
        tokio::time::sleep(every).await;
        heartbeat(api).await?;
    }
}

/// Reports that it is ready, and renews its Lease.
async fn heartbeat(api: &Api) -> Result<()> {
    #[expect(clippy::disallowed_methods, reason = "a node has a clock of its own")]
    let now = Timestamp::now();
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "Played", "message": "plays a kubelet",
        "lastHeartbeatTime": format!("{now:.0}"), "lastTransitionTime": format!("{now:.0}"),
    });
    let status = json!({
        "conditions": [condition], "capacity": {"pods": "110", "cpu": "64", "memory": "64Gi"},
        "allocatable": {"pods": "110", "cpu": "64", "memory": "64Gi"},
    });
    api.status(&format!("/api/v1/nodes/{NAME}"), status).await?;
    let spec = json!({"holderIdentity": NAME, "leaseDurationSeconds": 40, "renewTime": format!("{now:.6}")});
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": NAME, "namespace": "kube-node-lease"}, "spec": spec,
    });
    let path = format!("{LEASE}/{NAME}?fieldManager={NAME}&force=true");
    api.apply(&path, &lease).await
}

/// Watches all pods and handles each change.
async fn pods(api: &Api) -> Result<()> {
    let mut watch = api.watch("/api/v1/pods?watch=true").await?;
    while let Some(event) = watch.next().await? {
        if event["type"] != "DELETED" {
            answer(api, &event["object"]).await?;
        }
    }
    Ok(())
}

async fn answer(api: &Api, pod: &Value) -> Result<()> {
    let meta = &pod["metadata"];
    let path = format!(
        "/api/v1/namespaces/{}/pods/{}",
        meta["namespace"].as_str().context("no namespace")?,
        meta["name"].as_str().context("no name")?
    );
    if meta["deletionTimestamp"].is_string() {
        return api.delete(&format!("{path}?gracePeriodSeconds=0")).await;
    }
    if pod["spec"]["nodeName"].is_null() {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": NAME},
        });
        return api
            .create_unless_gone(&format!("{path}/binding"), &binding)
            .await;
    }
    if pod["status"]["phase"] == "Pending" {
        return api.status(&path, becomes(pod)).await;
    }
    Ok(())
}

/// A pod of a Job succeeds at once; any other is ready.
fn becomes(pod: &Value) -> Value {
    let labels = &pod["metadata"]["labels"];
    if labels["batch.kubernetes.io/job-name"].is_string() {
        return json!({"phase": "Succeeded"});
    }
    let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
    let ip = format!("10.9.{}.{}", byte(uid, 0), byte(uid, 2).max(1));
    json!({
        "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": pod["metadata"]["creationTimestamp"]},
        ],
    })
}

/// A byte of an address that is likely to be unique.
fn byte(uid: &str, at: usize) -> u8 {
    let digits = uid.get(at..at + 2).unwrap_or("01");
    u8::from_str_radix(digits, 16).unwrap_or(1)
}
