//! From template to template.

use k8s_openapi::api::apps::v1::DeploymentStatus;

use super::*;
use crate::workload::{is_ready, owned_by};

#[tokio::test(start_paused = true)]
async fn a_template_gets_its_set_and_that_its_pods() {
    let stage = stage().await;
    stage.create::<Deployment>(deployment(3, "app:1")).await;
    stage.pass(MINUTE).await;
    let web = stage.get::<Deployment>("web").await;
    let sets = sets(&stage).await;
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
    assert_eq!(note(set, "revision"), Some("1"));
    assert_eq!(note(set, "desired-replicas"), Some("3"));
    assert_eq!(note(set, "max-replicas"), Some("4"));
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
        notes(&stage).await,
        [format!("Scaled up replica set {name} from 0 to 3")]
    );
    let progressing = condition(&stage, "Progressing").await;
    assert_eq!(
        progressing.reason.as_deref(),
        Some("NewReplicaSetAvailable")
    );
    let message = format!("ReplicaSet \"{name}\" has successfully progressed.");
    assert_eq!(progressing.message, Some(message));
    let available = condition(&stage, "Available").await;
    assert_eq!(
        available.reason.as_deref(),
        Some("MinimumReplicasAvailable")
    );
}

#[tokio::test(start_paused = true)]
async fn a_roll_out_keeps_to_its_room() {
    let stage = stage().await;
    let mut web = deployment(4, "app:1");
    web["spec"]["strategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}});
    stage.create::<Deployment>(web).await;
    stage.pass(MINUTE).await;
    stage
        .patch::<Deployment>("web", image("app:2", "usual"))
        .await;
    for _ in 0..200 {
        stage.pass(Duration::from_millis(50)).await;
        let pods = active(&stage).await;
        assert!(pods.len() <= 5, "{} pods", pods.len());
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        assert!(ready >= 3, "{ready} of {} are ready", pods.len());
    }
    let sets = sets(&stage).await;
    assert_eq!(sizes(&sets), [0, 4]);
    assert_eq!(note(&sets[1], "revision"), Some("2"));
    assert_eq!(progress(&stage).await, "NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn going_back_makes_the_former_set_the_newest() {
    let stage = stage().await;
    stage.create::<Deployment>(deployment(2, "app:1")).await;
    stage.pass(MINUTE).await;
    let first = sets(&stage).await.remove(0);
    stage
        .patch::<Deployment>("web", image("app:2", "usual"))
        .await;
    stage.pass(MINUTE).await;
    // As `kubectl rollout undo` writes it.
    let mut back = image("app:1", "usual");
    back["spec"]["template"]["metadata"]["labels"]["fate"] = Value::Null;
    stage.patch::<Deployment>("web", back).await;
    stage.pass(MINUTE).await;
    let sets = sets(&stage).await;
    assert_eq!(sizes(&sets), [0, 2]);
    assert_eq!(sets[1].uid(), first.uid());
    assert_eq!(note(&sets[1], "revision"), Some("3"));
    assert_eq!(note(&sets[1], "revision-history"), Some("1"));
    let web = stage.get::<Deployment>("web").await;
    assert_eq!(web.annotations()["deployment.kubernetes.io/revision"], "3");
}

#[tokio::test(start_paused = true)]
async fn a_roll_out_that_gets_nowhere_is_late_until_it_moves() {
    let stage = stage().await;
    stage.create::<Deployment>(deployment(3, "app:1")).await;
    stage.pass(MINUTE).await;
    stage
        .patch::<Deployment>("web", image("app:2", "bad"))
        .await;
    stage.pass(4 * MINUTE).await;
    assert_eq!(progress(&stage).await, "ReplicaSetUpdated");
    stage.pass(2 * MINUTE).await;
    let late = condition(&stage, "Progressing").await;
    assert_eq!(late.reason.as_deref(), Some("ProgressDeadlineExceeded"));
    assert_eq!(late.status, "False");
    assert!(
        late.message
            .unwrap()
            .ends_with("has timed out progressing.")
    );
    assert_eq!(
        condition(&stage, "Available").await.status,
        "True",
        "the former pods stay"
    );

    stage
        .patch::<Deployment>("web", image("app:3", "usual"))
        .await;
    stage.pass(MINUTE).await;
    assert_eq!(progress(&stage).await, "NewReplicaSetAvailable");
    assert_eq!(sizes(&sets(&stage).await), [0, 0, 3]);
}

#[tokio::test(start_paused = true)]
async fn recreated_pods_never_meet_the_former_ones() {
    let stage = stage().await;
    let mut web = deployment(3, "app:1");
    web["spec"]["strategy"] = json!({"type": "Recreate"});
    stage.create::<Deployment>(web).await;
    stage.pass(MINUTE).await;
    stage
        .patch::<Deployment>("web", image("app:2", "usual"))
        .await;
    for _ in 0..100 {
        stage.pass(Duration::from_millis(50)).await;
        let pods: Vec<Pod> = stage.list().await;
        let mut hashes: Vec<_> = pods
            .iter()
            .map(|pod| &pod.labels()["pod-template-hash"])
            .collect();
        hashes.dedup();
        assert!(hashes.len() <= 1, "{hashes:?}");
    }
    assert_eq!(sizes(&sets(&stage).await), [0, 3]);
    assert_eq!(progress(&stage).await, "NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn only_so_many_revisions_are_kept() {
    let stage = stage().await;
    let mut web = deployment(1, "app:0");
    web["spec"]["revisionHistoryLimit"] = 2.into();
    stage.create::<Deployment>(web).await;
    for number in 1..5 {
        stage.pass(MINUTE).await;
        stage
            .patch::<Deployment>("web", image(&format!("app:{number}"), "usual"))
            .await;
    }
    stage.pass(MINUTE).await;
    let sets = sets(&stage).await;
    let revisions: Vec<_> = sets
        .iter()
        .filter_map(|set| note(set, "revision"))
        .collect();
    assert_eq!(revisions, ["3", "4", "5"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_counts_once_it_was_ready_long_enough() {
    let stage = stage().await;
    let mut web = deployment(2, "app:1");
    web["spec"]["minReadySeconds"] = 120.into();
    stage.create::<Deployment>(web).await;
    stage.pass(MINUTE).await;
    assert_eq!(condition(&stage, "Available").await.status, "False");
    assert_eq!(progress(&stage).await, "ReplicaSetUpdated");
    stage.pass(2 * MINUTE).await;
    assert_eq!(condition(&stage, "Available").await.status, "True");
    stage
        .patch::<Deployment>("web", json!({"spec": {"minReadySeconds": 5}}))
        .await;
    stage.pass(MINUTE).await;
    let spec = sets(&stage).await[0].spec.clone().unwrap();
    assert_eq!(spec.min_ready_seconds, Some(5));
}
