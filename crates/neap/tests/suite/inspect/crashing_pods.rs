//! Pods that crash again and again, as `neap explain` and `neap check` show them.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use serde_json::json;

use super::{neap, parts};
use crate::{kube_client::connect, up::sandbox::Sandbox};

#[tokio::test]
async fn explain_of_a_deployment_shows_its_crashing_pods() {
    let sandbox = Sandbox::new();
    let up = sandbox.up(&[]);
    let kubeconfig = up.kubeconfig_path();
    let client = connect(&kubeconfig).await;
    let container = json!({"name": "main", "image": "busybox", "command": ["sh", "-c", "exit 3"]});
    let deployment = json!({
        "metadata": {"name": "crash"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "crash"}},
            "template": {"metadata": {"labels": {"app": "crash"}}, "spec": {"containers": [container]}},
        },
    });
    let deployment: Deployment = serde_json::from_value(deployment).unwrap();
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments
        .create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client);
    all_crash(&pods, 2).await;
    let output = neap(&sandbox, &kubeconfig, &["explain", "deploy/crash"]);
    let (code, stdout, stderr) = parts(&output);
    assert_eq!(code, Some(0), "{stderr}");
    for text in [
        "Deployment default/crash is unhealthy",
        "0 of 2 pods are ready",
        "(and 1 other): the container main keeps crashing (",
        "it exited with code 3",
        "--previous",
    ] {
        assert!(stdout.contains(text), "{text}: {stdout}");
    }
    let check = neap(&sandbox, &kubeconfig, &["check", "-o", "short"]);
    assert_eq!(parts(&check).0, Some(1));
}

/// Waits until `count` pods wait for their second restart.
async fn all_crash(pods: &Api<Pod>, count: usize) {
    let waits = |pod: &&Pod| {
        let status = pod
            .status
            .as_ref()
            .and_then(|status| status.container_statuses.as_ref());
        let first = status.and_then(|all| all.first());
        first.is_some_and(|one| {
            let waiting = one.state.as_ref().and_then(|state| state.waiting.as_ref());
            one.restart_count >= 1 && waiting.is_some()
        })
    };
    let mut polls = tokio::time::interval(Duration::from_millis(50));
    let crashed = async {
        while pods
            .list(&ListParams::default())
            .await
            .unwrap()
            .iter()
            .filter(waits)
            .count()
            < count
        {
            polls.tick().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_mins(1), crashed).await;
    assert!(waited.is_ok(), "the pods do not crash");
}
