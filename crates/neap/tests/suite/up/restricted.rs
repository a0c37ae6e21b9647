//! `neap up --restricted`: a node that refuses paths of the machine and root.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::PostParams, runtime::wait::await_condition};
use serde_json::{Value, json};

use super::sandbox::Sandbox;
use crate::kube_client;

const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

async fn create(pods: &Api<Pod>, name: &str, user: u32, volume: Value) {
    let mut volume = volume;
    volume["name"] = json!("files");
    let pod = json!({
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never", "volumes": [volume],
            "securityContext": {"runAsUser": user, "runAsGroup": user},
            "containers": [{
                "name": "main", "image": "busybox", "command": ["true"],
                "volumeMounts": [{"name": "files", "mountPath": "/files"}],
            }],
        },
    });
    let pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
}

/// Waits until the status of a pod contains the text.
async fn says(pods: &Api<Pod>, name: &str, text: &str) {
    let says = |pod: Option<&Pod>| {
        let status = pod.map(|pod| serde_json::to_string(&pod.status).unwrap());
        status.is_some_and(|status| status.contains(text))
    };
    let waiting = await_condition(pods.clone(), name, says);
    let said = tokio::time::timeout(WAIT_TIMEOUT, waiting).await;
    if said.is_err() {
        let pod = pods.get(name).await.unwrap();
        panic!("{text}: {:?}", pod.status);
    }
}

#[tokio::test]
async fn the_flag_refuses_paths_of_the_machine_and_root() {
    let own = || json!({"emptyDir": {}});
    let machine = || json!({"hostPath": {"path": "/etc"}});
    let path = "this node refuses paths of the machine (--restricted)";
    let root = "would run as root, which this node refuses (--restricted)";
    for (arguments, host_path, as_root) in [
        (&["--restricted"][..], path, root),
        (&[], "\"phase\":\"Succeeded\"", "\"phase\":\"Succeeded\""),
    ] {
        let sandbox = Sandbox::new();
        let neap = sandbox.up(arguments);
        let client = kube_client::connect(&neap.kubeconfig_path()).await;
        let pods: Api<Pod> = Api::default_namespaced(client);
        create(&pods, "path", 1000, machine()).await;
        create(&pods, "root", 0, own()).await;
        create(&pods, "neither", 1000, own()).await;
        says(&pods, "path", host_path).await;
        says(&pods, "root", as_root).await;
        says(&pods, "neither", "\"phase\":\"Succeeded\"").await;
    }
}
