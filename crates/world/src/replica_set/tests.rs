use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::{ReplicaSet, ReplicaSetStatus},
    core::v1::Pod,
};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::stage::{Kubelet, TestCluster};

const MINUTE: Duration = Duration::from_mins(1);

fn set(name: &str, replicas: i32) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "app"}]},
            },
        },
    })
}

async fn cluster() -> TestCluster {
    let cluster = TestCluster::start(|context| Ok(vec![super::component(context)?])).await;
    cluster.with_kubelet(Kubelet::default())
}

fn names(pods: &[Pod]) -> Vec<String> {
    pods.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn the_specified_number_of_pods_runs() {
    let cluster = cluster().await;
    cluster.create::<ReplicaSet>(set("web", 3)).await;
    cluster.advance(MINUTE).await;
    let pods: Vec<Pod> = cluster.list().await;
    let owner = cluster.get::<ReplicaSet>("web").await;
    for pod in &pods {
        assert_eq!(pod.metadata.generate_name.as_deref(), Some("web-"));
        assert_eq!(
            pod.owner_references(),
            [crate::workload::owned_by(&owner).unwrap()]
        );
    }
    let status = ReplicaSetStatus {
        replicas: 3,
        fully_labeled_replicas: Some(3),
        ready_replicas: Some(3),
        available_replicas: Some(3),
        observed_generation: Some(1),
        terminating_replicas: Some(0),
        ..ReplicaSetStatus::default()
    };
    assert_eq!(owner.status, Some(status));

    cluster
        .patch::<ReplicaSet>("web", json!({"spec": {"replicas": 1}}))
        .await;
    cluster.advance(MINUTE).await;
    assert_eq!(cluster.list::<Pod>().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_replaced() {
    let cluster = cluster().await;
    cluster.create::<ReplicaSet>(set("web", 2)).await;
    cluster.advance(MINUTE).await;
    let before: Vec<Pod> = cluster.list().await;
    cluster.delete::<Pod>(&before[0].name_any()).await;
    cluster.advance(MINUTE).await;
    let after: Vec<Pod> = cluster.list().await;
    assert_eq!(after.len(), 2);
    assert!(after.iter().all(|pod| pod.uid() != before[0].uid()));
}

#[tokio::test(start_paused = true)]
async fn pods_are_adopted_and_released_by_their_labels() {
    let cluster = cluster().await;
    let pod = json!({
        "metadata": {"name": "stray", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "app"}]},
    });
    cluster.create::<Pod>(pod).await;
    cluster.create::<ReplicaSet>(set("web", 2)).await;
    cluster.advance(MINUTE).await;
    let pods: Vec<Pod> = cluster.list().await;
    assert_eq!(pods.len(), 2, "{:?}", names(&pods));
    let stray = cluster.get::<Pod>("stray").await;
    assert_eq!(stray.owner_references().len(), 1, "adopted");

    let label = json!({"metadata": {"labels": {"app": "other"}}});
    cluster.patch::<Pod>("stray", label).await;
    cluster.advance(MINUTE).await;
    let stray = cluster.get::<Pod>("stray").await;
    assert!(stray.owner_references().is_empty(), "released");
    assert_eq!(cluster.list::<Pod>().await.len(), 3, "and replaced");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_has_ended_is_not_adopted() {
    let cluster = TestCluster::start(|context| Ok(vec![super::component(context)?])).await;
    let pod = json!({
        "metadata": {"name": "stray", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "app"}]},
    });
    cluster.create::<Pod>(pod).await;
    let over = json!({"phase": "Failed"});
    cluster.patch_status::<Pod>("stray", over).await;
    cluster.create::<ReplicaSet>(set("web", 1)).await;
    cluster.advance(MINUTE).await;
    let stray = cluster.get::<Pod>("stray").await;
    assert!(stray.owner_references().is_empty());
    assert_eq!(cluster.list::<Pod>().await.len(), 2, "another runs");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_available_once_it_was_ready_long_enough() {
    let cluster = cluster().await;
    let mut slow = set("web", 1);
    slow["spec"]["minReadySeconds"] = 600.into();
    cluster.create::<ReplicaSet>(slow).await;
    let available = async || {
        let status = cluster
            .get::<ReplicaSet>("web")
            .await
            .status
            .unwrap_or_default();
        (status.ready_replicas, status.available_replicas)
    };
    cluster.advance(9 * MINUTE).await;
    assert_eq!(available().await, (Some(1), None));
    cluster.advance(2 * MINUTE).await;
    assert_eq!(available().await, (Some(1), Some(1)));
}
