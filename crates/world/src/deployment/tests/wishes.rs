//! What people ask for besides a template.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_paused_one_is_scaled_and_not_rolled() {
    let stage = stage().await;
    stage.create::<Deployment>(deployment(2, "app:1")).await;
    stage.pass(MINUTE).await;
    stage
        .patch::<Deployment>("web", json!({"spec": {"paused": true}}))
        .await;
    stage.pass(MINUTE).await;
    let paused = condition(&stage, "Progressing").await;
    assert_eq!(paused.reason.as_deref(), Some("DeploymentPaused"));
    assert_eq!(paused.status, "Unknown");
    stage
        .patch::<Deployment>("web", image("app:2", "usual"))
        .await;
    stage
        .patch::<Deployment>("web", json!({"spec": {"replicas": 5}}))
        .await;
    stage.pass(10 * MINUTE).await;
    assert_eq!(sizes(&sets(&stage).await), [5]);
    assert_eq!(
        progress(&stage).await,
        "DeploymentPaused",
        "and is never late"
    );
    let status = stage.get::<Deployment>("web").await.status.unwrap();
    assert_eq!(status.updated_replicas, None);

    stage
        .patch::<Deployment>("web", json!({"spec": {"paused": false}}))
        .await;
    stage.pass(MINUTE).await;
    assert_eq!(sizes(&sets(&stage).await), [0, 5]);
    assert_eq!(progress(&stage).await, "NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn another_number_in_mid_roll_out_is_spread() {
    let stage = stage().await;
    stage.create::<Deployment>(deployment(10, "app:1")).await;
    stage.pass(MINUTE).await;
    stage
        .patch::<Deployment>("web", image("app:2", "bad"))
        .await;
    stage.pass(MINUTE).await;
    assert_eq!(sizes(&sets(&stage).await), [8, 5]);
    stage
        .patch::<Deployment>("web", json!({"spec": {"replicas": 30}}))
        .await;
    stage.pass(MINUTE).await;
    // 30 and a quarter more, in the proportion of 8 to 5.
    assert_eq!(sizes(&sets(&stage).await), [23, 15]);
}

#[tokio::test(start_paused = true)]
async fn none_is_a_number() {
    let stage = stage().await;
    stage.create::<Deployment>(deployment(2, "app:1")).await;
    stage.pass(MINUTE).await;
    stage
        .patch::<Deployment>("web", json!({"spec": {"replicas": 0}}))
        .await;
    stage.pass(MINUTE).await;
    assert_eq!(active(&stage).await.len(), 0);
    assert_eq!(condition(&stage, "Available").await.status, "True");
    stage
        .patch::<Deployment>("web", json!({"spec": {"replicas": 1}}))
        .await;
    stage.pass(MINUTE).await;
    assert_eq!(active(&stage).await.len(), 1);
    let set = sets(&stage).await.remove(0);
    assert_eq!(note(&set, "desired-replicas"), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn sets_are_adopted_and_released_by_their_labels() {
    let stage = stage().await;
    stage.create::<Deployment>(deployment(2, "app:1")).await;
    stage.pass(MINUTE).await;
    let set = sets(&stage).await.remove(0);
    let name = set.name_any();
    let other = json!({"metadata": {"labels": {"app": "other"}}});
    stage.patch::<ReplicaSet>(&name, other).await;
    stage.pass(Duration::from_secs(1)).await;
    let released = stage.get::<ReplicaSet>(&name).await;
    assert!(released.owner_references().is_empty());
    let back = json!({"metadata": {"labels": {"app": "web"}}});
    stage.patch::<ReplicaSet>(&name, back).await;
    stage.pass(MINUTE).await;
    let adopted = stage.get::<ReplicaSet>(&name).await;
    assert_eq!(adopted.owner_references(), set.owner_references());
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_anothers_is_passed_over() {
    let stage = stage().await;
    stage.create::<Deployment>(deployment(1, "app:1")).await;
    stage.pass(MINUTE).await;
    let mut other = sets(&stage).await.remove(0);
    let name = other.name_any();
    stage.delete::<Deployment>("web").await;
    stage.pass(MINUTE).await;
    if stage
        .api::<ReplicaSet>()
        .get_opt(&name)
        .await
        .unwrap()
        .is_some()
    {
        stage.delete::<ReplicaSet>(&name).await;
        stage.pass(MINUTE).await;
    }
    other.metadata.owner_references = None;
    other.metadata.resource_version = None;
    other.metadata.uid = None;
    other
        .labels_mut()
        .insert("app".to_owned(), "other".to_owned());
    stage
        .create::<ReplicaSet>(serde_json::to_value(other).unwrap())
        .await;
    stage.create::<Deployment>(deployment(1, "app:1")).await;
    stage.pass(MINUTE).await;
    let web = stage.get::<Deployment>("web").await;
    let status = web.status.clone().unwrap();
    assert_eq!(status.collision_count, Some(1));
    assert_eq!(status.available_replicas, Some(1));
    let sets: Vec<ReplicaSet> = stage.list().await;
    let own = sets.iter().find(|set| {
        set.owner_references()
            .iter()
            .any(|it| Some(&it.uid) == web.uid().as_ref())
    });
    assert_ne!(own.unwrap().name_any(), name);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_when_nothing_happens() {
    let stage = stage().await;
    stage.create::<Deployment>(deployment(2, "app:1")).await;
    stage.pass(MINUTE).await;
    let before = stage.get::<Deployment>("web").await.resource_version();
    let set = sets(&stage).await.remove(0).resource_version();
    stage.pass(120 * MINUTE).await;
    assert_eq!(
        stage.get::<Deployment>("web").await.resource_version(),
        before
    );
    assert_eq!(sets(&stage).await.remove(0).resource_version(), set);
}
