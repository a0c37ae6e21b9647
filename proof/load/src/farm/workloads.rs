//! What a cluster does about Deployments and StatefulSets, without running anything: their pods exist and
//! are ready, and their status says so.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinSet,
};

use crate::client::{Client, Connection};

const KINDS: [&str; 2] = ["deployments", "statefulsets"];
/// Connections over which pods and statuses are written.
const WRITERS: usize = 8;
/// Workloads that wait for a writer.
const QUEUE: usize = 4096;
const MERGE: &str = "application/merge-patch+json";
const STARTED: &str = "2026-01-01T00:00:00Z";

/// Makes all workloads ready until it is dropped.
pub(super) struct ReadyWorkloads {
    /// The number of pods that exist.
    pods: Arc<Mutex<usize>>,
    tasks: JoinSet<Result<()>>,
}

struct Workload {
    plural: &'static str,
    object: Value,
}

impl ReadyWorkloads {
    /// Watches workloads from now on.
    pub(super) async fn start(client: &Client) -> Result<Self> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let (pods, receiver) = (Arc::default(), Arc::new(Mutex::new(receiver)));
        let mut tasks = JoinSet::new();
        for plural in KINDS {
            let watch = watch(client, plural).await?;
            tasks.spawn(follow(plural, watch, sender.clone()));
        }
        for _ in 0..WRITERS {
            let connection = client.connect().await?;
            tasks.spawn(write(connection, Arc::clone(&receiver), Arc::clone(&pods)));
        }
        Ok(Self { pods, tasks })
    }

    /// The number of pods that exist; fails if a workload could not be made ready.
    pub(super) async fn pods(&mut self) -> Result<usize> {
        if let Some(ended) = self.tasks.try_join_next() {
            ended??;
        }
        Ok(*self.pods.lock().await)
    }
}

async fn watch(client: &Client, plural: &str) -> Result<crate::client::Watch> {
    let path = format!("/apis/apps/v1/{plural}");
    let mut connection = client.connect().await?;
    let list = connection.send(Method::GET, &path, "").await?.success()?;
    let version = list["metadata"]["resourceVersion"].as_str();
    let version = version.context("a list without a version")?;
    let path = format!("{path}?watch=true&resourceVersion={version}");
    let watch = client.connect().await?.watch(&path).await?;
    ensure!(watch.status == 200, "a watch was answered {}", watch.status);
    Ok(watch)
}

/// Passes on the workloads whose newest version has no status.
async fn follow(
    plural: &'static str,
    mut watch: crate::client::Watch,
    sender: mpsc::Sender<Workload>,
) -> Result<()> {
    while let Some(mut event) = watch.next().await? {
        let object = event["object"].take();
        let is_new = object["metadata"]["generation"] != object["status"]["observedGeneration"];
        if is_new && event["type"] != "DELETED" {
            sender.send(Workload { plural, object }).await?;
        }
    }
    anyhow::bail!("the watch of {plural} has ended")
}

async fn write(
    mut connection: Connection,
    receiver: Arc<Mutex<mpsc::Receiver<Workload>>>,
    pods: Arc<Mutex<usize>>,
) -> Result<()> {
    loop {
        let workload = receiver.lock().await.recv().await;
        let workload = workload.context("no workload is watched any more")?;
        let created = make_ready(&mut connection, &workload).await?;
        *pods.lock().await += created;
    }
}

/// Creates the pods of a workload unless it has them, and writes its status. Returns their number.
async fn make_ready(connection: &mut Connection, workload: &Workload) -> Result<usize> {
    let object = &workload.object;
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text("namespace"), text("name"));
    let replicas = object["spec"]["replicas"].as_u64().unwrap_or(1);
    let mut created = 0;
    for number in 0..replicas {
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let body = pod(object, &format!("{name}-{number}")).to_string();
        let answer = connection.send(Method::POST, &path, body).await?;
        if answer.status == 409 {
            continue;
        }
        answer.success().context("a pod was not created")?;
        let path = format!("{path}/{name}-{number}/status");
        let ready = running().to_string();
        let reported = connection.send_as(Method::PATCH, &path, MERGE, ready);
        reported.await?.success()?;
        created += 1;
    }
    let status = json!({"status": {
        "observedGeneration": metadata["generation"], "replicas": replicas,
        "readyReplicas": replicas, "availableReplicas": replicas, "updatedReplicas": replicas,
    }});
    let plural = workload.plural;
    let path = format!("/apis/apps/v1/namespaces/{namespace}/{plural}/{name}/status");
    let reported = connection.send_as(Method::PATCH, &path, MERGE, status.to_string());
    reported.await?.success()?;
    Ok(created)
}

/// A pod of a workload on a node, as its template says.
fn pod(workload: &Value, name: &str) -> Value {
    let template = &workload["spec"]["template"];
    let mut spec = template["spec"].clone();
    spec["nodeName"] = "node".into();
    let claims = workload["spec"]["volumeClaimTemplates"].as_array();
    for claim in claims.into_iter().flatten() {
        let claim = claim["metadata"]["name"].as_str().unwrap_or_default();
        let source = json!({"claimName": format!("{claim}-{name}")});
        let volume = json!({"name": claim, "persistentVolumeClaim": source});
        if let Some(volumes) = spec["volumes"].as_array_mut() {
            volumes.push(volume);
        }
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
            "ownerReferences": [{
                "apiVersion": workload["apiVersion"], "kind": workload["kind"],
                "name": workload["metadata"]["name"], "uid": workload["metadata"]["uid"],
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": spec,
    })
}

fn running() -> Value {
    let condition =
        |type_: &str| json!({"type": type_, "status": "True", "lastTransitionTime": STARTED});
    let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition);
    json!({"status": {
        "phase": "Running", "startTime": STARTED, "podIP": "10.1.0.1",
        "conditions": conditions,
        "containerStatuses": [{
            "name": "main", "image": "app", "imageID": "", "ready": true, "started": true,
            "restartCount": 0, "state": {"running": {"startedAt": STARTED}},
        }],
    }})
}
