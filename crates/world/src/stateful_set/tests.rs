mod claims;
mod order;
mod update;

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet, StatefulSetStatus},
    core::v1::{Event, PersistentVolumeClaim, Pod},
};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{
    stage::{Kubelet, PodBehavior, TestCluster},
    workload::is_ready,
};

const MINUTE: Duration = Duration::from_mins(1);

fn set(replicas: i32) -> Value {
    json!({
        "metadata": {"name": "db", "annotations": {"team": "a"}},
        "spec": {
            "replicas": replicas,
            "serviceName": "dbs",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "main", "image": "app:1"}]},
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data", "labels": {"tier": "fast"}},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }],
        },
    })
}

/// A patch to another image, whose pods behave as the label says.
fn image(image: &str, behavior: &str) -> Value {
    json!({"spec": {"template": {
        "metadata": {"labels": {"behavior": behavior}},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }}})
}

async fn cluster() -> TestCluster {
    let kubelet = Kubelet::default()
        .behavior("bad", PodBehavior::Unready)
        .behavior("slow", PodBehavior::Ready(MINUTE))
        .behavior("short", PodBehavior::Ends(1, 5 * MINUTE));
    let cluster = TestCluster::start(|context| Ok(vec![super::component(context)?])).await;
    cluster.with_kubelet(kubelet)
}

async fn pods(cluster: &TestCluster) -> Vec<Pod> {
    let mut pods: Vec<Pod> = cluster.list().await;
    pods.sort_by_key(ResourceExt::name_any);
    pods
}

fn names(pods: &[Pod]) -> Vec<String> {
    pods.iter().map(ResourceExt::name_any).collect()
}

fn images(pods: &[Pod]) -> Vec<&str> {
    let specs = pods.iter().filter_map(|pod| pod.spec.as_ref());
    let images = specs.filter_map(|spec| spec.containers[0].image.as_deref());
    images.collect()
}

async fn status(cluster: &TestCluster) -> StatefulSetStatus {
    cluster.get::<StatefulSet>("db").await.status.unwrap()
}

async fn revisions(cluster: &TestCluster) -> Vec<ControllerRevision> {
    let mut revisions: Vec<ControllerRevision> = cluster.list().await;
    revisions.sort_by_key(|revision| revision.revision);
    revisions
}

async fn messages(cluster: &TestCluster) -> Vec<String> {
    let events: Vec<Event> = cluster.list().await;
    let mut messages: Vec<_> = events
        .into_iter()
        .filter_map(|event| event.message)
        .collect();
    messages.sort();
    messages
}
