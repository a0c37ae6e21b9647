//! ConfigMaps of users: configurations of their own, and what callers are checked with.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{MINUTE, SECOND, cluster::TestCluster};
use crate::api::{BuildbarnFrontend, BuildbarnStorage, BuildbarnWorker};

#[tokio::test(start_paused = true)]
async fn storage_with_its_own_configuration_shrinks_only_with_an_acknowledgement() {
    let cluster = TestCluster::ready().await;
    let maps = cluster.list::<ConfigMap>().await;
    let rendered = |it: &&ConfigMap| it.name_any().starts_with("buildbarn-config-storage-");
    let data = maps.iter().find(rendered).unwrap().data.clone();
    cluster
        .put_config_map(json!({"metadata": {"name": "mine"}, "data": data}))
        .await;
    let own = json!({"spec": {"configMapName": "mine"}});
    cluster.merge::<BuildbarnStorage>("storage", own).await;
    cluster.settle().await;
    assert_eq!(cluster.reason::<BuildbarnStorage>("storage").await, "Ready");
    let smaller = json!({"spec": {"replicas": 1}});
    cluster.merge::<BuildbarnStorage>("storage", smaller).await;
    cluster.pass(MINUTE).await;
    assert_eq!(cluster.storage_replicas().await, 2);
    assert_eq!(
        cluster.reason::<BuildbarnStorage>("storage").await,
        "PlanNotAcknowledged"
    );
    assert!(cluster.frontend_config().await.contains("storage-1"));
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_configuration_has_another_queue_than_its_spec_is_not_rolled_out() {
    let cluster = TestCluster::ready().await;
    let before = cluster.revision("ubuntu22-04").await;
    let mut files: Value = json!(cluster.rendered("ubuntu22-04").await);
    let text = files["worker-ubuntu22-04.jsonnet"].as_str().unwrap();
    files["worker-ubuntu22-04.jsonnet"] = text.replace("OSFamily", "OSfamily").into();
    let mine = json!({"metadata": {"name": "mine"}, "data": files});
    cluster.put_config_map(mine).await;
    let own = json!({"spec": {"configMapName": "mine"}});
    cluster.merge::<BuildbarnWorker>("ubuntu22-04", own).await;
    cluster.pass(SECOND).await;
    let (reason, message) = cluster
        .condition::<BuildbarnWorker>("ubuntu22-04", "Stalled")
        .await;
    assert_eq!(reason, "ConfigInvalid", "{message}");
    let path = "worker-ubuntu22-04.jsonnet: buildDirectories[0].runners[0].platform: is {";
    assert!(message.starts_with(path), "{message}");
    assert_eq!(cluster.revision("ubuntu22-04").await, before);
    // The spec follows, and the same configuration is rolled out.
    let image = crate::platform::DEFAULT_RUNNER_IMAGE;
    let platform = json!([
        {"name": "OSfamily", "value": "linux"},
        {"name": "container-image", "value": format!("docker://{image}")},
    ]);
    let follows = json!({"spec": {"platform": platform}});
    cluster
        .merge::<BuildbarnWorker>("ubuntu22-04", follows)
        .await;
    cluster.settle().await;
    assert_eq!(
        cluster.reason::<BuildbarnWorker>("ubuntu22-04").await,
        "Ready"
    );
}

#[tokio::test(start_paused = true)]
async fn what_callers_are_checked_with_has_to_exist_and_a_change_of_it_is_rolled_out() {
    let cluster = TestCluster::ready().await;
    let before = cluster.revision("frontend").await;
    let jwt = json!({"configMapName": "keys", "key": "jwks.json"});
    let access = json!({"spec": {"access": {"authentication": {"jwt": jwt}}}});
    cluster.merge::<BuildbarnFrontend>("frontend", access).await;
    cluster.pass(SECOND).await;
    let (reason, message) = cluster
        .condition::<BuildbarnFrontend>("frontend", "Stalled")
        .await;
    assert_eq!(reason, "ConfigMapMissing");
    assert!(
        message.starts_with("spec.access.authentication.jwt: the ConfigMap keys"),
        "{message}"
    );
    let keys = |data: Value| json!({"metadata": {"name": "keys"}, "data": data});
    cluster
        .create::<ConfigMap>(keys(json!({"other": "{}"})))
        .await;
    cluster.pass(SECOND).await;
    let reason = cluster.reason::<BuildbarnFrontend>("frontend").await;
    assert_eq!(reason, "ConfigKeyMissing");
    assert_eq!(cluster.revision("frontend").await, before);
    let change = json!({"data": {"jwks.json": "{}"}});
    cluster.merge::<ConfigMap>("keys", change).await;
    cluster.settle().await;
    let reason = cluster.reason::<BuildbarnFrontend>("frontend").await;
    assert_eq!(reason, "Ready");
    let first = cluster.revision("frontend").await;
    let change = json!({"data": {"jwks.json": "{\"keys\": []}"}});
    cluster.merge::<ConfigMap>("keys", change).await;
    cluster.pass(SECOND).await;
    assert_ne!(cluster.revision("frontend").await, first);
}
