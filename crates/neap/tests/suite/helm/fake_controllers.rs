//! Writes the objects and statuses that controllers and nodes would write.

use http::Method;
use serde_json::{Value, json};

use super::helm_cluster::HelmCluster;

const MERGE: &str = "application/merge-patch+json";

/// Waits until an object of that name is created; returns it as created.
pub(crate) async fn created(cluster: &HelmCluster, collection: &str, name: &str) -> Value {
    created_after(cluster, collection, name, &Value::Null).await
}

/// Waits until an object of that name with a uid other than `before` is created.
pub(crate) async fn created_after(
    cluster: &HelmCluster,
    collection: &str,
    name: &str,
    before: &Value,
) -> Value {
    let path = format!("{collection}?watch=true&fieldSelector=metadata.name%3D{name}");
    let mut watch = cluster.connect().await.watch(&path).await.unwrap();
    loop {
        let event = watch.next().await.unwrap().expect("another watch event");
        let object = &event["object"];
        if event["type"] == "ADDED" && object["metadata"]["uid"] != *before {
            return object.clone();
        }
    }
}

/// Writes the status of an object.
pub(crate) async fn status(cluster: &HelmCluster, path: &str, status: Value) {
    let mut connection = cluster.connect().await;
    let body = json!({"status": status}).to_string();
    let path = format!("{path}/status");
    let answer = connection.send_as(Method::PATCH, &path, MERGE, body).await;
    answer.unwrap().success().unwrap();
}

/// Makes a Deployment ready: creates the ReplicaSet of its newest template and writes both statuses.
pub(crate) async fn make_deployment_ready(cluster: &HelmCluster, deployment: &Value) {
    let replicas = &deployment["spec"]["replicas"];
    let generation = &deployment["metadata"]["generation"];
    let counted = json!({
        "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
        "readyReplicas": replicas, "availableReplicas": replicas,
    });
    let set = replica_set(deployment);
    let sets = "/apis/apps/v1/namespaces/bay/replicasets";
    let name = set["metadata"]["name"].as_str().unwrap();
    let mut connection = cluster.connect().await;
    let made = connection.send(Method::POST, sets, set.to_string()).await;
    made.unwrap().success().unwrap();
    let of_set = json!({"observedGeneration": 1, "replicas": replicas, "readyReplicas": replicas});
    status(cluster, &format!("{sets}/{name}"), of_set).await;
    let name = deployment["metadata"]["name"].as_str().unwrap();
    let path = format!("/apis/apps/v1/namespaces/bay/deployments/{name}");
    status(cluster, &path, counted).await;
}

fn replica_set(deployment: &Value) -> Value {
    let meta = &deployment["metadata"];
    let name = meta["name"].as_str().unwrap();
    let hash = format!("h{}", meta["generation"]);
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"]["pod-template-hash"] = json!(hash);
    let labels = template["metadata"]["labels"].clone();
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{name}-{hash}"), "labels": labels,
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": name,
                "uid": meta["uid"], "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "replicas": deployment["spec"]["replicas"],
            "selector": {"matchLabels": labels}, "template": template,
        },
    })
}

/// The status of a job whose pods succeeded, or of which one failed.
pub(crate) fn job_ended(done: bool) -> Value {
    let now = "2026-01-02T03:04:05Z";
    let (kind, before) = if done {
        ("Complete", "SuccessCriteriaMet")
    } else {
        ("Failed", "FailureTarget")
    };
    let condition = |kind| json!({"type": kind, "status": "True", "reason": "Played", "lastTransitionTime": now, "lastProbeTime": now});
    let mut status = json!({"startTime": now, "conditions": [condition(before), condition(kind)]});
    let count = if done { "succeeded" } else { "failed" };
    status[count] = json!(1);
    if done {
        status["completionTime"] = json!(now);
    }
    status
}
