mod nodes;
mod update;

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet, DaemonSetStatus},
    core::v1::{Event, Node, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::pod::node_of;
use crate::{
    stage::{Fate, Kubelet, Stage},
    workload::{is_active, is_ready, owned_by},
};

const MINUTE: Duration = Duration::from_mins(1);

fn set() -> Value {
    json!({
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "main", "image": "app:1"}]},
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

/// With so many nodes, `n0` and so on; the even ones have `disk: ssd`.
async fn stage(nodes: usize) -> Stage {
    let kubelet = Kubelet::default()
        .fate("bad", Fate::Unready)
        .fate("short", Fate::Ends(1, Duration::from_secs(1)));
    let stage = Stage::open(|site| Ok(vec![super::service(site)?])).await;
    let stage = stage.with(kubelet);
    for number in 0..nodes {
        let disk = if number % 2 == 0 { "ssd" } else { "hdd" };
        let node = json!({"metadata": {"name": format!("n{number}"), "labels": {"disk": disk}}});
        stage.create_for_all::<Node>(node).await;
        taint(&stage, &format!("n{number}"), json!([])).await;
    }
    stage
}

fn nodes(stage: &Stage) -> Api<Node> {
    Api::all(stage.client.clone())
}

async fn taint(stage: &Stage, node: &str, taints: Value) {
    let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
    let patched = nodes(stage)
        .patch(node, &PatchParams::default(), &patch)
        .await;
    patched.unwrap();
}

/// The pods that are there to stay, by their nodes.
async fn pods(stage: &Stage) -> Vec<Pod> {
    let mut pods: Vec<Pod> = stage.list().await;
    pods.retain(is_active);
    pods.sort_by_key(|pod| node_of(pod).map(str::to_owned));
    pods
}

fn on(pods: &[Pod]) -> Vec<&str> {
    pods.iter().filter_map(node_of).collect()
}

fn images(pods: &[Pod]) -> Vec<&str> {
    let specs = pods.iter().filter_map(|pod| pod.spec.as_ref());
    let images = specs.filter_map(|spec| spec.containers[0].image.as_deref());
    images.collect()
}

async fn status(stage: &Stage) -> DaemonSetStatus {
    stage.get::<DaemonSet>("agent").await.status.unwrap()
}
