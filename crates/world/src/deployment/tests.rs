mod plan;
mod roll_out;
mod wishes;

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentCondition, ReplicaSet},
    core::v1::{Event, Pod},
};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{
    stage::{Fate, Kubelet, Stage},
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

/// A patch to another image, whose pods fare as the label says.
fn image(image: &str, fate: &str) -> Value {
    json!({"spec": {"template": {
        "metadata": {"labels": {"fate": fate}},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }}})
}

async fn stage() -> Stage {
    let services = |site: &_| {
        Ok(vec![
            super::service(site)?,
            crate::replica_set::service(site)?,
        ])
    };
    let kubelet = Kubelet::default()
        .fate("bad", Fate::Unready)
        .fate("slow", Fate::Ready(MINUTE));
    Stage::open(services).await.with(kubelet)
}

/// The sets by revision.
async fn sets(stage: &Stage) -> Vec<ReplicaSet> {
    let mut sets: Vec<ReplicaSet> = stage.list().await;
    sets.sort_by_key(super::annotation::revision);
    sets
}

fn sizes(sets: &[ReplicaSet]) -> Vec<i32> {
    let size = |set: &ReplicaSet| set.spec.as_ref().and_then(|spec| spec.replicas);
    sets.iter().filter_map(size).collect()
}

async fn condition(stage: &Stage, name: &str) -> DeploymentCondition {
    let status = stage.get::<Deployment>("web").await.status.unwrap();
    let mut conditions = status.conditions.unwrap().into_iter();
    conditions.find(|it| it.type_ == name).unwrap()
}

async fn progress(stage: &Stage) -> String {
    condition(stage, "Progressing").await.reason.unwrap()
}

async fn active(stage: &Stage) -> Vec<Pod> {
    let pods: Vec<Pod> = stage.list().await;
    pods.into_iter().filter(is_active).collect()
}

async fn notes(stage: &Stage) -> Vec<String> {
    let events: Vec<Event> = stage.list().await;
    let of_scaling = events
        .into_iter()
        .filter(|event| event.reason.as_deref() == Some("ScalingReplicaSet"));
    of_scaling.filter_map(|event| event.message).collect()
}

fn note<'a>(set: &'a ReplicaSet, name: &str) -> Option<&'a str> {
    let name = format!("deployment.kubernetes.io/{name}");
    set.annotations().get(&name).map(String::as_str)
}
