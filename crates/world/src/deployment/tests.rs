mod decisions;
mod rollout;
mod spec_changes;

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentCondition, ReplicaSet},
    core::v1::{Event, Pod},
};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{
    stage::{Kubelet, PodBehavior, TestCluster},
    workload::is_active,
};

const MINUTE: Duration = Duration::from_mins(1);

fn deployment(replicas: i32, image: &str) -> Value {
    json!({
        "metadata": {"name": "web", "annotations": {"team": "a"}},
        "spec": {
            "replicas": replicas,
            "progressDeadlineSeconds": 300,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
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
    let components = |context: &_| {
        Ok(vec![
            super::component(context)?,
            crate::replica_set::component(context)?,
        ])
    };
    let kubelet = Kubelet::default()
        .behavior("bad", PodBehavior::Unready)
        .behavior("slow", PodBehavior::Ready(MINUTE));
    TestCluster::start(components).await.with_kubelet(kubelet)
}

/// The ReplicaSets by revision.
async fn sets(cluster: &TestCluster) -> Vec<ReplicaSet> {
    let mut sets: Vec<ReplicaSet> = cluster.list().await;
    sets.sort_by_key(super::annotation::revision);
    sets
}

fn sizes(sets: &[ReplicaSet]) -> Vec<i32> {
    let size = |set: &ReplicaSet| set.spec.as_ref().and_then(|spec| spec.replicas);
    sets.iter().filter_map(size).collect()
}

async fn condition(cluster: &TestCluster, name: &str) -> DeploymentCondition {
    let status = cluster.get::<Deployment>("web").await.status.unwrap();
    let mut conditions = status.conditions.unwrap().into_iter();
    conditions.find(|it| it.type_ == name).unwrap()
}

async fn progress(cluster: &TestCluster) -> String {
    condition(cluster, "Progressing").await.reason.unwrap()
}

async fn active(cluster: &TestCluster) -> Vec<Pod> {
    let pods: Vec<Pod> = cluster.list().await;
    pods.into_iter().filter(is_active).collect()
}

async fn scaling_events(cluster: &TestCluster) -> Vec<String> {
    let events: Vec<Event> = cluster.list().await;
    let of_scaling = events
        .into_iter()
        .filter(|event| event.reason.as_deref() == Some("ScalingReplicaSet"));
    of_scaling.filter_map(|event| event.message).collect()
}

fn annotation<'a>(set: &'a ReplicaSet, name: &str) -> Option<&'a str> {
    let name = format!("deployment.kubernetes.io/{name}");
    set.annotations().get(&name).map(String::as_str)
}
