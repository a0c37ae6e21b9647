//! Names that other objects have, and writes that fail for one component.

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{Event, Service, ServiceAccount},
};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{SECOND, cluster::TestCluster};
use crate::{
    api::{BuildbarnBrowser, BuildbarnFrontend, BuildbarnStorage, BuildbarnWorker},
    farm::{ComponentKind, objects::possible_owners},
};

fn service(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
    })
}

#[tokio::test(start_paused = true)]
async fn a_name_that_another_object_has_is_reported_until_that_object_is_gone() {
    let cluster = TestCluster::open().await;
    cluster.create::<Service>(service("storage")).await;
    let account = json!({"metadata": {"name": "storage-storage"}});
    cluster.create::<ServiceAccount>(account).await;
    cluster.farm().await;
    cluster.settle().await;
    let (reason, message) = cluster
        .condition::<BuildbarnStorage>("storage", "Stalled")
        .await;
    assert_eq!(reason, "NameTaken", "{message}");
    assert!(
        message.contains("ServiceAccount storage-storage, Service storage"),
        "{message}"
    );
    assert!(cluster.get::<StatefulSet>("storage").await.is_none());
    let events = cluster.list::<Event>().await;
    let told = events
        .iter()
        .filter(|it| it.reason.as_deref() == Some("NameTaken"));
    assert_eq!(told.count(), 1);
    let writes = cluster.writes();
    cluster.pass(SECOND * 600).await;
    assert_eq!(cluster.writes(), writes, "{:#?}", cluster.calls());
    // The deletion itself is what the operator waits for.
    cluster.remove::<ServiceAccount>("storage-storage").await;
    cluster.remove::<Service>("storage").await;
    cluster.pass(SECOND).await;
    let ours: Service = cluster.get("storage").await.unwrap();
    assert_eq!(ours.owner_references().len(), 1);
    cluster.settle().await;
    assert_eq!(cluster.reason::<BuildbarnStorage>("storage").await, "Ready");
}

#[tokio::test(start_paused = true)]
async fn of_two_components_with_one_name_the_older_has_it() {
    let cluster = TestCluster::ready().await;
    let second = json!({"metadata": {"name": "frontend"}, "spec": {}});
    cluster.create::<BuildbarnBrowser>(second).await;
    cluster.settle().await;
    let (reason, message) = cluster
        .condition::<BuildbarnBrowser>("frontend", "Stalled")
        .await;
    assert_eq!(reason, "NameTaken", "{message}");
    assert!(
        message.contains("Service frontend is that of BuildbarnFrontend frontend"),
        "{message}"
    );
    assert_eq!(
        cluster.reason::<BuildbarnFrontend>("frontend").await,
        "Ready"
    );
    cluster.remove::<BuildbarnFrontend>("frontend").await;
    cluster.settle().await;
    assert_eq!(
        cluster.reason::<BuildbarnBrowser>("frontend").await,
        "Ready"
    );
    let deployment: Deployment = cluster.get("frontend").await.unwrap();
    assert_eq!(deployment.owner_references()[0].kind, "BuildbarnBrowser");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_for_one_component_keeps_no_pool_from_being_drained() {
    let cluster = TestCluster::ready().await;
    for name in ["w-0", "w-1", "w-2"] {
        cluster.worker_pod(name).await;
        cluster.queue.register(name, true);
    }
    cluster.pass(SECOND).await;
    cluster.fail_writes("/deployments/browser");
    let change = json!({"spec": {"replicas": 5}});
    cluster.merge::<BuildbarnBrowser>("browser", change).await;
    let change = json!({"spec": {"replicas": 1}});
    cluster
        .merge::<BuildbarnWorker>("ubuntu22-04", change)
        .await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.replicas("browser").await, 3, "it could be written");
    assert_eq!(cluster.queue.drains().len(), 2);
}

#[test]
fn the_owner_of_an_object_can_be_found_by_its_name() {
    let is_owner = |object: &str, kind, name| possible_owners(object).contains(&(kind, name));
    assert!(is_owner("main", ComponentKind::Scheduler, "main"));
    assert!(is_owner("main-worker", ComponentKind::Worker, "main"));
    assert!(!is_owner("main-worker", ComponentKind::Browser, "main"));
    let rendered = "buildbarn-config-browser-my-page-0123456789";
    assert!(is_owner(rendered, ComponentKind::Browser, "my-page"));
}
