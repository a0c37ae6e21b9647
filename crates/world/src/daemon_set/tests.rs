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
    stage::{Kubelet, PodBehavior, TestCluster},
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

/// A patch to another image, whose pods behave as the label says.
fn image(image: &str, behavior: &str) -> Value {
    json!({"spec": {"template": {
        "metadata": {"labels": {"behavior": behavior}},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }}})
}

/// A cluster with `nodes` nodes, `n0` and so on; the even ones have `disk: ssd`.
async fn cluster(nodes: usize) -> TestCluster {
    let kubelet = Kubelet::default()
        .behavior("bad", PodBehavior::Unready)
        .behavior("short", PodBehavior::Ends(1, Duration::from_secs(1)));
    let cluster = TestCluster::start(|context| Ok(vec![super::component(context)?])).await;
    let cluster = cluster.with_kubelet(kubelet);
    for number in 0..nodes {
        let disk = if number % 2 == 0 { "ssd" } else { "hdd" };
        let node = json!({"metadata": {"name": format!("n{number}"), "labels": {"disk": disk}}});
        cluster.create_cluster_scoped::<Node>(node).await;
        taint(&cluster, &format!("n{number}"), json!([])).await;
    }
    cluster
}

fn nodes(cluster: &TestCluster) -> Api<Node> {
    Api::all(cluster.client.clone())
}

async fn taint(cluster: &TestCluster, node: &str, taints: Value) {
    let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
    let patched = nodes(cluster)
        .patch(node, &PatchParams::default(), &patch)
        .await;
    patched.unwrap();
}

/// The active pods, by their nodes.
async fn pods(cluster: &TestCluster) -> Vec<Pod> {
    let mut pods: Vec<Pod> = cluster.list().await;
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

async fn status(cluster: &TestCluster) -> DaemonSetStatus {
    cluster.get::<DaemonSet>("agent").await.status.unwrap()
}
