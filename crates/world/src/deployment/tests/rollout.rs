//! Tests of rollouts.

use k8s_openapi::api::apps::v1::DeploymentStatus;

use super::*;
use crate::workload::{is_ready, owned_by};

#[tokio::test(start_paused = true)]
async fn a_deployment_creates_a_replica_set_with_its_pods() {
    let cluster = cluster().await;
    cluster.create::<Deployment>(deployment(3, "app:1")).await;
    cluster.advance(MINUTE).await;
    let web = cluster.get::<Deployment>("web").await;
    let sets = sets(&cluster).await;
    let [set] = sets.as_slice() else {
        panic!("{sets:#?}");
    };
    let hash = &set.labels()["pod-template-hash"];
    assert_eq!(set.name_any(), format!("web-{hash}"));
    assert_eq!(set.labels()["app"], "web");
    let spec = set.spec.clone().unwrap();
    assert_eq!(
        &spec.selector.match_labels.unwrap()["pod-template-hash"],
        hash
    );
    let labels = spec.template.unwrap().metadata.unwrap().labels.unwrap();
    assert_eq!(&labels["pod-template-hash"], hash);
    assert_eq!(set.owner_references(), [owned_by(&web).unwrap()]);
    assert_eq!(set.annotations()["team"], "a");
    assert_eq!(annotation(set, "revision"), Some("1"));
    assert_eq!(annotation(set, "desired-replicas"), Some("3"));
    assert_eq!(annotation(set, "max-replicas"), Some("4"));
    assert_eq!(web.annotations()["deployment.kubernetes.io/revision"], "1");
    assert_eq!(web.metadata.generation, Some(1), "as it was applied");
    let mut status = web.status.unwrap();
    status.conditions = None;
    let expected = DeploymentStatus {
        observed_generation: Some(1),
        replicas: Some(3),
        updated_replicas: Some(3),
        ready_replicas: Some(3),
        available_replicas: Some(3),
        terminating_replicas: Some(0),
        ..DeploymentStatus::default()
    };
    assert_eq!(status, expected);
    let name = set.name_any();
    assert_eq!(
        scaling_events(&cluster).await,
        [format!("Scaled up replica set {name} from 0 to 3")]
    );
    let progressing = condition(&cluster, "Progressing").await;
    assert_eq!(
        progressing.reason.as_deref(),
        Some("NewReplicaSetAvailable")
    );
    let message = format!("ReplicaSet \"{name}\" has successfully progressed.");
    assert_eq!(progressing.message, Some(message));
    let available = condition(&cluster, "Available").await;
    assert_eq!(
        available.reason.as_deref(),
        Some("MinimumReplicasAvailable")
    );
}

#[tokio::test(start_paused = true)]
async fn a_rollout_stays_within_surge_and_unavailable() {
    let cluster = cluster().await;
    let mut web = deployment(4, "app:1");
    web["spec"]["strategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}});
    cluster.create::<Deployment>(web).await;
    cluster.advance(MINUTE).await;
    cluster
        .patch::<Deployment>("web", image("app:2", "usual"))
        .await;
    for _ in 0..200 {
        cluster.advance(Duration::from_millis(50)).await;
        let pods = active(&cluster).await;
        assert!(pods.len() <= 5, "{} pods", pods.len());
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        assert!(ready >= 3, "{ready} of {} are ready", pods.len());
    }
    let sets = sets(&cluster).await;
    assert_eq!(sizes(&sets), [0, 4]);
    assert_eq!(annotation(&sets[1], "revision"), Some("2"));
    assert_eq!(progress(&cluster).await, "NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn a_rollback_makes_the_former_set_the_newest() {
    let cluster = cluster().await;
    cluster.create::<Deployment>(deployment(2, "app:1")).await;
    cluster.advance(MINUTE).await;
    let first = sets(&cluster).await.remove(0);
    cluster
        .patch::<Deployment>("web", image("app:2", "usual"))
        .await;
    cluster.advance(MINUTE).await;
    // As `kubectl rollout undo` writes it.
    let mut back = image("app:1", "usual");
    back["spec"]["template"]["metadata"]["labels"]["behavior"] = Value::Null;
    cluster.patch::<Deployment>("web", back).await;
    cluster.advance(MINUTE).await;
    let sets = sets(&cluster).await;
    assert_eq!(sizes(&sets), [0, 2]);
    assert_eq!(sets[1].uid(), first.uid());
    assert_eq!(annotation(&sets[1], "revision"), Some("3"));
    assert_eq!(annotation(&sets[1], "revision-history"), Some("1"));
    let web = cluster.get::<Deployment>("web").await;
    assert_eq!(web.annotations()["deployment.kubernetes.io/revision"], "3");
}

#[tokio::test(start_paused = true)]
async fn a_stuck_rollout_exceeds_its_deadline_until_it_progresses() {
    let cluster = cluster().await;
    cluster.create::<Deployment>(deployment(3, "app:1")).await;
    cluster.advance(MINUTE).await;
    cluster
        .patch::<Deployment>("web", image("app:2", "bad"))
        .await;
    cluster.advance(4 * MINUTE).await;
    assert_eq!(progress(&cluster).await, "ReplicaSetUpdated");
    cluster.advance(2 * MINUTE).await;
    let late = condition(&cluster, "Progressing").await;
    assert_eq!(late.reason.as_deref(), Some("ProgressDeadlineExceeded"));
    assert_eq!(late.status, "False");
    assert!(
        late.message
            .unwrap()
            .ends_with("has timed out progressing.")
    );
    assert_eq!(
        condition(&cluster, "Available").await.status,
        "True",
        "the former pods stay"
    );

    cluster
        .patch::<Deployment>("web", image("app:3", "usual"))
        .await;
    cluster.advance(MINUTE).await;
    assert_eq!(progress(&cluster).await, "NewReplicaSetAvailable");
    assert_eq!(sizes(&sets(&cluster).await), [0, 0, 3]);
}

#[tokio::test(start_paused = true)]
async fn recreated_pods_never_run_beside_the_old_ones() {
    let cluster = cluster().await;
    let mut web = deployment(3, "app:1");
    web["spec"]["strategy"] = json!({"type": "Recreate"});
    cluster.create::<Deployment>(web).await;
    cluster.advance(MINUTE).await;
    cluster
        .patch::<Deployment>("web", image("app:2", "usual"))
        .await;
    for _ in 0..100 {
        cluster.advance(Duration::from_millis(50)).await;
        let pods: Vec<Pod> = cluster.list().await;
        let mut hashes: Vec<_> = pods
            .iter()
            .map(|pod| &pod.labels()["pod-template-hash"])
            .collect();
        hashes.dedup();
        assert!(hashes.len() <= 1, "{hashes:?}");
    }
    assert_eq!(sizes(&sets(&cluster).await), [0, 3]);
    assert_eq!(progress(&cluster).await, "NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn revisions_beyond_the_limit_are_deleted() {
    let cluster = cluster().await;
    let mut web = deployment(1, "app:0");
    web["spec"]["revisionHistoryLimit"] = 2.into();
    cluster.create::<Deployment>(web).await;
    for number in 1..5 {
        cluster.advance(MINUTE).await;
        cluster
            .patch::<Deployment>("web", image(&format!("app:{number}"), "usual"))
            .await;
    }
    cluster.advance(MINUTE).await;
    let sets = sets(&cluster).await;
    let revisions: Vec<_> = sets
        .iter()
        .filter_map(|set| annotation(set, "revision"))
        .collect();
    assert_eq!(revisions, ["3", "4", "5"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_available_after_min_ready_seconds() {
    let cluster = cluster().await;
    let mut web = deployment(2, "app:1");
    web["spec"]["minReadySeconds"] = 120.into();
    cluster.create::<Deployment>(web).await;
    cluster.advance(MINUTE).await;
    assert_eq!(condition(&cluster, "Available").await.status, "False");
    assert_eq!(progress(&cluster).await, "ReplicaSetUpdated");
    cluster.advance(2 * MINUTE).await;
    assert_eq!(condition(&cluster, "Available").await.status, "True");
    cluster
        .patch::<Deployment>("web", json!({"spec": {"minReadySeconds": 5}}))
        .await;
    cluster.advance(MINUTE).await;
    let spec = sets(&cluster).await[0].spec.clone().unwrap();
    assert_eq!(spec.min_ready_seconds, Some(5));
}
