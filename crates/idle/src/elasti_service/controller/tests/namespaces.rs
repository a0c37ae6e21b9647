//! An operator with rights in some namespaces only.

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, api::PostParams};

use super::*;

#[tokio::test(start_paused = true)]
async fn an_operator_of_some_namespaces_reads_no_others() {
    let cluster = TestCluster::open_within(&["default", "shop"], |_| {}).await;
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    for name in ["shop", "private"] {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .unwrap();
    }
    let elsewhere: Api<ElastiService> = Api::namespaced(cluster.client.clone(), "private");
    let hidden = serde_json::from_value(cluster::elasti_service()).unwrap();
    elsewhere
        .create(&PostParams::default(), &hidden)
        .await
        .unwrap();
    cluster.declare().await;
    cluster.verdicts.idle();
    cluster.pass(MINUTE * 11).await;
    assert_eq!(cluster.replicas().await, 0);
    cluster.pods_are_ready(false).await;
    // It may not watch Namespaces, so it polls them.
    cluster.on_namespace(json!({OFF: "true"})).await;
    cluster.pass(SECOND * 31).await;
    assert_eq!(cluster.replicas().await, 1);
    cluster.pods_are_ready(true).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.status().await.mode, Some(Mode::Serve));
    assert_eq!(
        elsewhere.get("web").await.unwrap().status,
        None,
        "it is not reconciled"
    );

    let within = |path: &str| {
        let parts: Vec<_> = path.trim_matches('/').split('/').collect();
        let at = parts.iter().position(|part| *part == "namespaces");
        let namespace = at.and_then(|at| parts.get(at + 1));
        let discovery = path.trim_matches('/').split('/').count() == 3 && path.starts_with("/apis");
        discovery || namespace.is_some_and(|name| ["default", "shop"].contains(name))
    };
    let beyond: Vec<_> = cluster
        .calls()
        .into_iter()
        .filter(|(_, path)| !within(path))
        .collect();
    assert_eq!(beyond, []);
}
