//! Simulates scheduler and kubelet: every pod of a namespace is scheduled and ready at once, with an
//! address of each family, and ends when it is deleted.

use std::{
    sync::atomic::{AtomicU16, Ordering},
    time::Duration,
};

use k8s_openapi::api::core::v1::{Binding, Node, Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use neap_kit::clock::Clock;
use serde_json::json;

const NAME: &str = "here";
/// No two pods of a run have the same address.
static NEXT: AtomicU16 = AtomicU16::new(1);

/// Creates the node unless it exists.
async fn register(client: &Client) {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = json!({"metadata": {"name": NAME}});
    let node = serde_json::from_value(node).unwrap();
    let made = nodes.create(&PostParams::default(), &node).await;
    if let Err(error) = made {
        assert!(
            matches!(&error, kube::Error::Api(status) if status.is_already_exists()),
            "{error}"
        );
    }
}

/// Runs the pods of a namespace; never returns.
pub(crate) async fn run_pods(client: Client, namespace: String) {
    register(&client).await;
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    loop {
        // A pod that changes meanwhile is retried in the next round.
        if let Ok(all) = pods.list(&ListParams::default()).await {
            for pod in all {
                let _ = look_after(&pods, &pod).await;
            }
        }
        Clock::system().sleep(Duration::from_millis(100)).await;
    }
}

async fn look_after(pods: &Api<Pod>, pod: &Pod) -> kube::Result<()> {
    let name = pod.name_any();
    if pod.metadata.deletion_timestamp.is_some() {
        let at_once = DeleteParams::default().grace_period(0);
        return pods.delete(&name, &at_once).await.map(drop);
    }
    let placed = pod
        .spec
        .as_ref()
        .is_some_and(|spec| spec.node_name.is_some());
    if !placed {
        return bind(pods, &name).await;
    }
    let runs = pod
        .status
        .as_ref()
        .is_some_and(|status| status.pod_ip.is_some());
    if runs { Ok(()) } else { run(pods, &name).await }
}

async fn bind(pods: &Api<Pod>, name: &str) -> kube::Result<()> {
    let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": NAME}});
    let binding: Binding = serde_json::from_value(binding).unwrap();
    let create = PostParams::default();
    let made: kube::Result<serde_json::Value> = pods
        .create_subresource("binding", name, &create, &binding)
        .await;
    made.map(drop)
}

async fn run(pods: &Api<Pod>, name: &str) -> kube::Result<()> {
    let [high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let (four, six) = (
        format!("10.2.{high}.{low}"),
        format!("fd00:2::{high:x}:{low:x}"),
    );
    let now = Clock::system().now();
    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": now});
    let status = json!({"status": {
        "phase": "Running", "podIP": four, "podIPs": [{"ip": four}, {"ip": six}],
        "conditions": [ready],
    }});
    let (parameters, patch) = (PatchParams::default(), Patch::Strategic(status));
    pods.patch_status(name, &parameters, &patch).await.map(drop)
}
