//! What is deleted while workers still need it.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use serde_json::json;

use super::{SECOND, cluster::TestCluster};
use crate::api::{
    BuildbarnBrowser, BuildbarnFrontend, BuildbarnScheduler, BuildbarnStorage, BuildbarnWorker,
    State,
};

const PODS: [&str; 3] = ["w-0", "w-1", "w-2"];

/// A farm that is ready, and whose first worker runs an action.
async fn busy() -> TestCluster {
    let cluster = TestCluster::ready().await;
    for name in PODS {
        cluster.worker_pod(name).await;
        cluster.queue.register(name, name == "w-0");
    }
    cluster.pass(SECOND).await;
    cluster
}

#[tokio::test(start_paused = true)]
async fn a_farm_that_is_deleted_at_once_is_kept_until_its_workers_are_drained() {
    let cluster = busy().await;
    cluster.remove::<BuildbarnStorage>("storage").await;
    cluster.remove::<BuildbarnScheduler>("scheduler").await;
    cluster.remove::<BuildbarnWorker>("ubuntu22-04").await;
    cluster.remove::<BuildbarnFrontend>("frontend").await;
    cluster.remove::<BuildbarnBrowser>("browser").await;
    cluster.pass(SECOND * 60).await;
    assert_eq!(cluster.replicas("ubuntu22-04").await, 1, "one is busy");
    assert!(cluster.get::<StatefulSet>("storage").await.is_some());
    assert!(cluster.get::<Deployment>("scheduler").await.is_some());
    assert!(cluster.get::<Deployment>("frontend").await.is_some());
    assert!(cluster.get::<BuildbarnBrowser>("browser").await.is_none());
    let kept = "it is kept until the workers of BuildbarnWorker ubuntu22-04 are drained";
    let ready = cluster.condition::<BuildbarnStorage>("storage", "Ready");
    assert_eq!(ready.await, ("Deleting".to_owned(), kept.to_owned()));
    cluster.queue.register("w-0", false);
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.replicas("ubuntu22-04").await, 0);
    assert!(cluster.get::<Deployment>("scheduler").await.is_some());
    for name in PODS {
        cluster.remove_pod(name).await;
    }
    cluster.pass(SECOND * 10).await;
    assert_eq!(cluster.states().await, []);
    assert!(cluster.queue.drains().is_empty());
    assert_eq!(cluster.names::<Deployment>().await, [""; 0]);
    assert_eq!(cluster.names::<StatefulSet>().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_goes_when_the_workers_of_a_pool_that_stays_are_idle() {
    let cluster = busy().await;
    cluster.remove::<BuildbarnScheduler>("scheduler").await;
    cluster.pass(SECOND * 60).await;
    assert!(cluster.get::<Deployment>("scheduler").await.is_some());
    assert_eq!(cluster.queue.drains().len(), 3);
    let worker: BuildbarnWorker = cluster.get("ubuntu22-04").await.unwrap();
    let drains = worker.status.unwrap().drains;
    assert!(drains.iter().all(|it| it.reason == "ComponentDeletion"));
    cluster.queue.register("w-0", false);
    cluster.pass(SECOND * 5).await;
    let gone = cluster.get::<BuildbarnScheduler>("scheduler").await;
    assert!(gone.is_none());
    assert_eq!(cluster.replicas("ubuntu22-04").await, 3, "the pool stays");
    assert_eq!(
        cluster.reason::<BuildbarnWorker>("ubuntu22-04").await,
        "WaitingForScheduler"
    );
    // A new one has no drains, and the pool gets actions.
    cluster.queue.forget_drains();
    let scheduler = json!({"metadata": {"name": "scheduler"}, "spec": {}});
    cluster.create::<BuildbarnScheduler>(scheduler).await;
    cluster.settle().await;
    assert_eq!(cluster.states().await, [State::Ready; 5]);
    assert!(cluster.queue.drains().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_bound_of_the_drains_bounds_what_is_kept_for_them() {
    let cluster = busy().await;
    let bound = json!({"spec": {"drain": {"timeoutSeconds": 120}}});
    cluster.merge::<BuildbarnWorker>("ubuntu22-04", bound).await;
    cluster.pass(SECOND).await;
    cluster.remove::<BuildbarnStorage>("storage").await;
    cluster.pass(SECOND * 100).await;
    assert!(cluster.get::<StatefulSet>("storage").await.is_some());
    assert_eq!(cluster.queue.drains().len(), 3);
    cluster.pass(SECOND * 60).await;
    assert!(cluster.get::<StatefulSet>("storage").await.is_none());
    // The scheduler is still there, and gives the workers actions again.
    cluster.pass(SECOND * 5).await;
    assert!(cluster.queue.drains().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_frontend_of_a_farm_that_stays_goes_at_once() {
    let cluster = busy().await;
    cluster.remove::<BuildbarnFrontend>("frontend").await;
    cluster.pass(SECOND).await;
    assert!(cluster.get::<BuildbarnFrontend>("frontend").await.is_none());
    assert!(cluster.queue.drains().is_empty());
}
