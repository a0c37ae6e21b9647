//! The controller against an API server in the test's own process. The tests write what the controllers of a
//! cluster would write, and a scheduler in memory answers about its queue.

mod bad_input;
mod cluster;
mod deletion;
mod exposure;
mod limits;
mod monitoring;
mod names;
mod own_config;
mod rights;
mod stand_ins;

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{ConfigMap, Event, Service, ServiceAccount},
    networking::v1::{Ingress, NetworkPolicy},
    policy::v1::PodDisruptionBudget,
};
use kube::ResourceExt;
use serde_json::json;

use self::cluster::TestCluster;
use crate::api::{
    BuildbarnBrowser, BuildbarnFrontend, BuildbarnScheduler, BuildbarnStorage, BuildbarnWorker,
    BuildbarnWorkerSpec, ReshardingStage, State,
};
use crate::platform::QueueName;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn a_farm_becomes_ready_and_then_nothing_is_written() {
    let cluster = TestCluster::open().await;
    cluster.farm().await;
    cluster.pass(SECOND).await;
    let created: BuildbarnWorker = cluster.get("ubuntu22-04").await.unwrap();
    assert_eq!(created.status.unwrap().state, Some(State::Creating));
    assert_eq!(
        created.metadata.finalizers.unwrap(),
        ["buildbarnworker.buildbarn.io"]
    );
    cluster.pods_are_ready().await;
    cluster.pass(SECOND).await;
    assert_eq!(cluster.states().await, [State::Ready; 5]);
    assert!(cluster.get::<Ingress>("scheduler").await.is_some());
    assert!(cluster.get::<Ingress>("browser").await.is_none());
    assert!(
        cluster
            .get::<ServiceAccount>("ubuntu22-04-worker")
            .await
            .is_some()
    );
    assert!(
        cluster
            .get::<PodDisruptionBudget>("storage-storage")
            .await
            .is_some()
    );
    assert!(
        cluster
            .get::<NetworkPolicy>("scheduler-scheduler")
            .await
            .is_some()
    );
    let service: Service = cluster.get("storage").await.unwrap();
    assert_eq!(service.spec.unwrap().cluster_ip.as_deref(), Some("None"));

    let objects = cluster.objects().await;
    let writes = cluster.writes();
    assert!(
        writes <= objects + 2 * 5,
        "{writes} writes for {objects} objects: {:#?}",
        cluster.calls()
    );
    cluster.pass(MINUTE * 90).await;
    assert_eq!(cluster.writes(), writes, "{:#?}", cluster.calls());
}

#[tokio::test(start_paused = true)]
async fn objects_are_as_recorded() {
    let cluster = TestCluster::ready().await;
    insta::assert_snapshot!(cluster.dump().await);
}

#[tokio::test(start_paused = true)]
async fn a_changed_object_is_repaired_and_a_removed_field_removes_its_object() {
    let cluster = TestCluster::ready().await;
    cluster.remove::<Service>("frontend").await;
    let change = json!({"spec": {"ingress": {"enabled": false}}});
    cluster
        .merge::<BuildbarnScheduler>("scheduler", change)
        .await;
    cluster.pass(SECOND).await;
    assert!(cluster.get::<Service>("frontend").await.is_some());
    assert!(cluster.get::<Ingress>("scheduler").await.is_none());
    assert!(cluster.get::<Deployment>("scheduler").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_roll_out_goes_from_storage_to_browser_and_stops_where_it_fails() {
    let cluster = TestCluster::ready().await;
    // A setting of all programs.
    let change = json!({"spec": {"maximumMessageSize": "4Mi"}});
    cluster.merge::<BuildbarnStorage>("storage", change).await;
    cluster.pass(SECOND).await;
    let outdated = cluster.outdated().await;
    assert_eq!(outdated, ["storage"], "only the first is changed");
    let frontend: BuildbarnFrontend = cluster.get("frontend").await.unwrap();
    let status = frontend.status.unwrap();
    let ready = status
        .conditions
        .iter()
        .find(|it| it.type_ == "Ready")
        .unwrap();
    assert_eq!(ready.reason, "WaitingForRollout");
    assert!(
        ready.message.contains("BuildbarnStorage storage"),
        "{}",
        ready.message
    );
    // The new pods never become ready.
    cluster.pass(MINUTE * 11).await;
    let storage: BuildbarnStorage = cluster.get("storage").await.unwrap();
    let status = storage.status.unwrap();
    let stalled = status
        .conditions
        .iter()
        .find(|it| it.type_ == "Stalled")
        .unwrap();
    assert_eq!(
        (&*stalled.status, &*stalled.reason),
        ("True", "RolloutFailed")
    );
    assert_eq!(cluster.outdated().await, ["storage"]);
    // Then they do.
    for _ in 0..8 {
        cluster.pods_are_ready().await;
        cluster.pass(SECOND * 5).await;
    }
    assert_eq!(cluster.states().await, [State::Ready; 5]);
    assert_eq!(
        cluster.rolled_out(),
        ["storage", "scheduler", "ubuntu22-04", "frontend", "browser"]
    );
    // The former configurations are gone.
    assert_eq!(cluster.list::<ConfigMap>().await.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_taken_back_leaves_no_configuration_behind() {
    let cluster = TestCluster::ready().await;
    let before = cluster.names::<ConfigMap>().await;
    for listen_on in [json!("PodIP"), json!(null)] {
        let change = json!({"spec": {"pod": {"listenOn": listen_on}}});
        cluster.merge::<BuildbarnFrontend>("frontend", change).await;
        cluster.settle().await;
    }
    assert_eq!(cluster.names::<ConfigMap>().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_pool_shrinks_only_by_workers_that_are_idle() {
    let cluster = TestCluster::ready().await;
    for name in ["w-0", "w-1", "w-2"] {
        cluster.worker_pod(name).await;
        cluster.queue.register(name, true);
    }
    cluster.pass(SECOND).await;
    cluster
        .merge::<BuildbarnWorker>("ubuntu22-04", json!({"spec": {"replicas": 1}}))
        .await;
    cluster.pass(SECOND * 30).await;
    assert_eq!(cluster.replicas("ubuntu22-04").await, 3);
    let worker: BuildbarnWorker = cluster.get("ubuntu22-04").await.unwrap();
    let drains = worker.status.unwrap().drains;
    assert_eq!(drains.len(), 2);
    assert!(drains.iter().all(|it| it.running == Some(1)), "{drains:?}");
    // The scheduler restarts and has lost its drains.
    cluster.queue.forget_drains();
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.queue.drains().len(), 2);
    let first = drains[0].pattern["pod"].clone();
    cluster.queue.register(&first, false);
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.replicas("ubuntu22-04").await, 2);
    cluster.remove_pod(&first).await;
    let second = drains[1].pattern["pod"].clone();
    cluster.queue.register(&second, false);
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.replicas("ubuntu22-04").await, 1);
    cluster.remove_pod(&second).await;
    cluster.pass(SECOND * 5).await;
    assert!(cluster.queue.drains().is_empty());
    let worker: BuildbarnWorker = cluster.get("ubuntu22-04").await.unwrap();
    assert!(worker.status.unwrap().drains.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_changes_its_platform_is_drained_in_the_queue_of_its_workers() {
    let cluster = TestCluster::ready().await;
    cluster.worker_pod("w-0").await;
    cluster.queue.register("w-0", true);
    cluster.pass(SECOND).await;
    let before = cluster.revision("ubuntu22-04").await;
    cluster.queue.take_asked();
    let platform = json!([{"name": "OSFamily", "value": "plan9"}]);
    let change = json!({"spec": {"platform": platform, "sizeClass": 3}});
    cluster
        .merge::<BuildbarnWorker>("ubuntu22-04", change)
        .await;
    cluster.pass(MINUTE * 5).await;
    assert_eq!(cluster.revision("ubuntu22-04").await, before, "it is busy");
    let former = QueueName::of(&BuildbarnWorkerSpec::default());
    assert_eq!(cluster.queue.take_asked(), [former]);
    cluster.queue.register("w-0", false);
    cluster.pass(SECOND * 5).await;
    assert_ne!(cluster.revision("ubuntu22-04").await, before);
    cluster.queue.take_asked();
    // From now on its workers are in the new queue.
    let cordon = json!({"spec": {"cordoned": true}});
    cluster
        .merge::<BuildbarnWorker>("ubuntu22-04", cordon)
        .await;
    cluster.pass(SECOND * 5).await;
    let asked = cluster.queue.take_asked();
    assert!(asked.iter().all(|queue| queue.size_class == 3), "{asked:?}");
    assert!(!asked.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pool_is_drained_before_it_goes() {
    let cluster = TestCluster::ready().await;
    for name in ["w-0", "w-1", "w-2"] {
        cluster.worker_pod(name).await;
        cluster.queue.register(name, name == "w-0");
    }
    cluster.pass(SECOND).await;
    cluster.remove::<BuildbarnWorker>("ubuntu22-04").await;
    cluster.pass(SECOND * 30).await;
    let worker: BuildbarnWorker = cluster.get("ubuntu22-04").await.unwrap();
    assert_eq!(worker.status.unwrap().state, Some(State::Deleting));
    assert_eq!(cluster.replicas("ubuntu22-04").await, 1, "one is busy");
    cluster.queue.register("w-0", false);
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.replicas("ubuntu22-04").await, 0);
    for name in ["w-0", "w-1", "w-2"] {
        cluster.remove_pod(name).await;
    }
    cluster.pass(SECOND * 10).await;
    assert!(
        cluster
            .get::<BuildbarnWorker>("ubuntu22-04")
            .await
            .is_none()
    );
    assert!(cluster.queue.drains().is_empty());
    assert!(
        cluster.get::<Deployment>("ubuntu22-04").await.is_none(),
        "garbage collected"
    );
}

#[tokio::test(start_paused = true)]
async fn a_bound_ends_a_drain_when_the_scheduler_does_not_answer() {
    let cluster = TestCluster::ready().await;
    for name in ["w-0", "w-1", "w-2"] {
        cluster.worker_pod(name).await;
    }
    let change = json!({"spec": {"drain": {"timeoutSeconds": 120}, "replicas": 0}});
    cluster.queue.silence(true);
    cluster
        .merge::<BuildbarnWorker>("ubuntu22-04", change)
        .await;
    cluster.pass(SECOND * 100).await;
    assert_eq!(cluster.replicas("ubuntu22-04").await, 3);
    let worker: BuildbarnWorker = cluster.get("ubuntu22-04").await.unwrap();
    let status = worker.status.unwrap();
    let draining = status
        .conditions
        .iter()
        .find(|it| it.type_ == "Draining")
        .unwrap();
    assert_eq!(draining.reason, "SchedulerDoesNotAnswer");
    cluster.pass(SECOND * 60).await;
    assert_eq!(cluster.replicas("ubuntu22-04").await, 0);
    let events = cluster.list::<Event>().await;
    assert!(
        events
            .iter()
            .any(|it| it.reason.as_deref() == Some("DrainTimedOut"))
    );
}

#[tokio::test(start_paused = true)]
async fn storage_grows_in_stages() {
    let cluster = TestCluster::ready().await;
    let change = json!({"spec": {"replicas": 3, "resharding": {"windowSeconds": 600}}});
    cluster.merge::<BuildbarnStorage>("storage", change).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.storage_replicas().await, 3);
    assert_eq!(cluster.stage().await, Some(ReshardingStage::Provisioning));
    assert!(!cluster.frontend_config().await.contains("storage-2"));
    cluster.settle().await;
    assert_eq!(cluster.stage().await, Some(ReshardingStage::Copying));
    let config = cluster.frontend_config().await;
    assert!(
        config.contains("storage-2") && config.contains("readFallback"),
        "{config}"
    );
    cluster.pass(MINUTE * 11).await;
    cluster.settle().await;
    assert_eq!(cluster.stage().await, None);
    let config = cluster.frontend_config().await;
    assert!(config.contains("storage-2") && !config.contains("readFallback"));
    assert_eq!(cluster.states().await, [State::Ready; 5]);
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_does_not_start_does_not_hold_up_the_shards() {
    let cluster = TestCluster::open().await;
    cluster.break_pods("browser");
    cluster.farm().await;
    cluster.settle().await;
    let change = json!({"spec": {"replicas": 3, "resharding": {"windowSeconds": 600}}});
    cluster.merge::<BuildbarnStorage>("storage", change).await;
    cluster.settle().await;
    assert_eq!(cluster.stage().await, Some(ReshardingStage::Copying));
    cluster.pass(MINUTE * 11).await;
    cluster.settle().await;
    assert_eq!(cluster.stage().await, None);
    let config = cluster.frontend_config().await;
    assert!(config.contains("storage-2") && !config.contains("readFallback"));
}

#[tokio::test(start_paused = true)]
async fn storage_that_shrinks_waits_for_an_acknowledgement() {
    let cluster = TestCluster::ready().await;
    cluster
        .merge::<BuildbarnStorage>("storage", json!({"spec": {"replicas": 1}}))
        .await;
    cluster.pass(MINUTE).await;
    assert_eq!(cluster.storage_replicas().await, 2);
    let storage: BuildbarnStorage = cluster.get("storage").await.unwrap();
    let status = storage.status.unwrap();
    let plan = status.storage.unwrap().plan.unwrap();
    assert_eq!((plan.safe, &*plan.moved_percent), (false, "50.0"));
    let stalled = status
        .conditions
        .iter()
        .find(|it| it.type_ == "Stalled")
        .unwrap();
    assert_eq!(stalled.reason, "PlanNotAcknowledged");
    let change =
        json!({"spec": {"acknowledgedPlan": plan.id, "resharding": {"windowSeconds": 86400}}});
    cluster.merge::<BuildbarnStorage>("storage", change).await;
    cluster.settle().await;
    assert_eq!(
        cluster.storage_replicas().await,
        2,
        "blobs are copied first"
    );
    cluster.pass(MINUTE * 60 * 25).await;
    cluster.settle().await;
    cluster.settle().await;
    assert_eq!(cluster.storage_replicas().await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_users_configuration_is_checked_watched_and_rolled_out() {
    let cluster = TestCluster::open().await;
    cluster.farm().await;
    cluster.pass(SECOND).await;
    cluster.pods_are_ready().await;
    cluster.pass(SECOND).await;
    let change = json!({"spec": {"configMapName": "mine"}});
    cluster.merge::<BuildbarnBrowser>("browser", change).await;
    cluster.pass(SECOND).await;
    assert_eq!(
        cluster.reason::<BuildbarnBrowser>("browser").await,
        "ConfigMapMissing"
    );
    let config =
        |text: &str| json!({"metadata": {"name": "mine"}, "data": {"browser.jsonnet": text}});
    cluster
        .put_config_map(json!({"metadata": {"name": "mine"}, "data": {"x": "{}"}}))
        .await;
    cluster.pass(SECOND).await;
    assert_eq!(
        cluster.reason::<BuildbarnBrowser>("browser").await,
        "ConfigKeyMissing"
    );
    cluster
        .put_config_map(config("{ listenAddress: ':7984' }"))
        .await;
    cluster.pass(SECOND).await;
    assert_eq!(
        cluster.reason::<BuildbarnBrowser>("browser").await,
        "ConfigInvalid"
    );
    let rendered = cluster.rendered("browser").await;
    let mut rendered = json!(rendered);
    cluster
        .put_config_map(json!({"metadata": {"name": "mine"}, "data": rendered}))
        .await;
    cluster.pass(SECOND).await;
    cluster.settle().await;
    assert_eq!(cluster.reason::<BuildbarnBrowser>("browser").await, "Ready");
    let before = cluster.revision("browser").await;
    rendered["unused.libsonnet"] = "{}".into();
    cluster
        .put_config_map(json!({"metadata": {"name": "mine"}, "data": rendered}))
        .await;
    cluster.pass(SECOND).await;
    assert_ne!(
        cluster.revision("browser").await,
        before,
        "a change rolls the pods out"
    );
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_reported_and_changes_nothing() {
    let cluster = TestCluster::ready().await;
    let calls = cluster.writes();
    for (change, reason) in [
        (json!({"spec": {"replicas": 0}}), "NoShards"),
        (
            json!({"spec": {"replicas": 2, "shards": [{"key": "a"}, {"key": "a"}]}}),
            "DuplicateShardKey",
        ),
        (
            json!({"spec": {"shards": [{"key": "0"}, {"key": "1"}, {"key": "2"}]}}),
            "InvalidShards",
        ),
        (
            json!({"spec": {"shards": null, "stores": {"cas": {"size": "64Gi"}}}}),
            "InvalidSize",
        ),
    ] {
        cluster.merge::<BuildbarnStorage>("storage", change).await;
        cluster.pass(SECOND).await;
        assert_eq!(cluster.reason::<BuildbarnStorage>("storage").await, reason);
        assert_eq!(cluster.storage_replicas().await, 2);
    }
    // Of each, the status and an Event.
    assert!(
        cluster.writes() - calls <= 2 * 4 + 5,
        "{:#?}",
        cluster.calls()
    );
    let twice = json!({"spec": {"platform": [{"name": "a"}, {"name": "a"}]}});
    cluster.merge::<BuildbarnWorker>("ubuntu22-04", twice).await;
    cluster
        .merge::<BuildbarnScheduler>("scheduler", json!({"spec": {"replicas": 2}}))
        .await;
    cluster.pass(SECOND).await;
    assert_eq!(
        cluster.reason::<BuildbarnWorker>("ubuntu22-04").await,
        "InvalidPlatform"
    );
    assert_eq!(
        cluster.reason::<BuildbarnScheduler>("scheduler").await,
        "TooManyReplicas"
    );
    assert!(
        cluster
            .refuses::<BuildbarnWorker>("ubuntu22-04", json!({"spec": {"replicas": -1}}))
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn a_public_frontend_without_authentication_is_warned_about() {
    let cluster = TestCluster::ready().await;
    let change = json!({"spec": {"serviceType": "LoadBalancer"}});
    cluster.merge::<BuildbarnFrontend>("frontend", change).await;
    cluster.pass(SECOND).await;
    let frontend: BuildbarnFrontend = cluster.get("frontend").await.unwrap();
    let status = frontend.status.unwrap();
    assert!(status.conditions.iter().any(|it| it.type_ == "Exposed"));
    let events = cluster.list::<Event>().await;
    assert!(
        events
            .iter()
            .any(|it| it.reason.as_deref() == Some("NoAuthentication"))
    );
    let service: Service = cluster.get("frontend").await.unwrap();
    let ports = service.spec.unwrap().ports.unwrap();
    assert_eq!(ports.len(), 1, "metrics are not public");
    let change = json!({"spec": {"serviceType": null}});
    cluster.merge::<BuildbarnFrontend>("frontend", change).await;
    cluster.pass(SECOND).await;
    let frontend: BuildbarnFrontend = cluster.get("frontend").await.unwrap();
    assert!(
        !frontend
            .status
            .unwrap()
            .conditions
            .iter()
            .any(|it| it.type_ == "Exposed")
    );
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_is_restarted_when_its_workers_are_idle() {
    let cluster = TestCluster::ready().await;
    cluster.worker_pod("w-0").await;
    cluster.queue.register("w-0", true);
    cluster.pass(SECOND).await;
    let before = cluster.revision("scheduler").await;
    let change = json!({"spec": {"noWorkersTimeoutSeconds": 60}});
    cluster
        .merge::<BuildbarnScheduler>("scheduler", change)
        .await;
    cluster.pass(SECOND * 30).await;
    assert_eq!(cluster.revision("scheduler").await, before);
    assert_eq!(cluster.queue.drains().len(), 1);
    cluster.queue.register("w-0", false);
    cluster.pass(SECOND * 5).await;
    assert_ne!(cluster.revision("scheduler").await, before);
    cluster.queue.forget_drains();
    cluster.pods_are_ready().await;
    cluster.pass(SECOND * 10).await;
    assert!(
        cluster.queue.drains().is_empty(),
        "the workers get actions again"
    );
}

#[tokio::test(start_paused = true)]
async fn two_farms_share_a_namespace_by_their_labels() {
    let cluster = TestCluster::ready().await;
    let storage = json!({"metadata": {"name": "other", "labels": {"buildbarn.io/farm": "other"}}, "spec": {}});
    cluster.create::<BuildbarnStorage>(storage).await;
    cluster.pass(SECOND * 2).await;
    let other: StatefulSet = cluster.get("other").await.unwrap();
    assert_eq!(other.labels()["buildbarn.io/farm"], "other");
    assert_eq!(cluster.reason::<BuildbarnStorage>("storage").await, "Ready");
    let second = json!({"metadata": {"name": "zweit"}, "spec": {}});
    cluster.create::<BuildbarnStorage>(second).await;
    cluster.pass(SECOND * 2).await;
    assert_eq!(
        cluster.reason::<BuildbarnStorage>("zweit").await,
        "SecondStorage"
    );
}
