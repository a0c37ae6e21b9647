//! Tests of pausing, scaling and adoption.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_is_scaled_and_not_rolled_out() {
    let cluster = cluster().await;
    cluster.create::<Deployment>(deployment(2, "app:1")).await;
    cluster.advance(MINUTE).await;
    cluster
        .patch::<Deployment>("web", json!({"spec": {"paused": true}}))
        .await;
    cluster.advance(MINUTE).await;
    let paused = condition(&cluster, "Progressing").await;
    assert_eq!(paused.reason.as_deref(), Some("DeploymentPaused"));
    assert_eq!(paused.status, "Unknown");
    cluster
        .patch::<Deployment>("web", image("app:2", "usual"))
        .await;
    cluster
        .patch::<Deployment>("web", json!({"spec": {"replicas": 5}}))
        .await;
    cluster.advance(10 * MINUTE).await;
    assert_eq!(sizes(&sets(&cluster).await), [5]);
    assert_eq!(
        progress(&cluster).await,
        "DeploymentPaused",
        "and is never late"
    );
    let status = cluster.get::<Deployment>("web").await.status.unwrap();
    assert_eq!(status.updated_replicas, None);

    cluster
        .patch::<Deployment>("web", json!({"spec": {"paused": false}}))
        .await;
    cluster.advance(MINUTE).await;
    assert_eq!(sizes(&sets(&cluster).await), [0, 5]);
    assert_eq!(progress(&cluster).await, "NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn a_new_replica_count_during_a_rollout_is_spread() {
    let cluster = cluster().await;
    cluster.create::<Deployment>(deployment(10, "app:1")).await;
    cluster.advance(MINUTE).await;
    cluster
        .patch::<Deployment>("web", image("app:2", "bad"))
        .await;
    cluster.advance(MINUTE).await;
    assert_eq!(sizes(&sets(&cluster).await), [8, 5]);
    cluster
        .patch::<Deployment>("web", json!({"spec": {"replicas": 30}}))
        .await;
    cluster.advance(MINUTE).await;
    // 30 and a quarter more, in the proportion of 8 to 5.
    assert_eq!(sizes(&sets(&cluster).await), [23, 15]);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_scaled_to_zero_and_back() {
    let cluster = cluster().await;
    cluster.create::<Deployment>(deployment(2, "app:1")).await;
    cluster.advance(MINUTE).await;
    cluster
        .patch::<Deployment>("web", json!({"spec": {"replicas": 0}}))
        .await;
    cluster.advance(MINUTE).await;
    assert_eq!(active(&cluster).await.len(), 0);
    assert_eq!(condition(&cluster, "Available").await.status, "True");
    cluster
        .patch::<Deployment>("web", json!({"spec": {"replicas": 1}}))
        .await;
    cluster.advance(MINUTE).await;
    assert_eq!(active(&cluster).await.len(), 1);
    let set = sets(&cluster).await.remove(0);
    assert_eq!(annotation(&set, "desired-replicas"), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn sets_are_adopted_and_released_by_their_labels() {
    let cluster = cluster().await;
    cluster.create::<Deployment>(deployment(2, "app:1")).await;
    cluster.advance(MINUTE).await;
    let set = sets(&cluster).await.remove(0);
    let name = set.name_any();
    let other = json!({"metadata": {"labels": {"app": "other"}}});
    cluster.patch::<ReplicaSet>(&name, other).await;
    cluster.advance(Duration::from_secs(1)).await;
    let released = cluster.get::<ReplicaSet>(&name).await;
    assert!(released.owner_references().is_empty());
    let back = json!({"metadata": {"labels": {"app": "web"}}});
    cluster.patch::<ReplicaSet>(&name, back).await;
    cluster.advance(MINUTE).await;
    let adopted = cluster.get::<ReplicaSet>(&name).await;
    assert_eq!(adopted.owner_references(), set.owner_references());
}

#[tokio::test(start_paused = true)]
async fn a_taken_name_is_avoided() {
    let cluster = cluster().await;
    cluster.create::<Deployment>(deployment(1, "app:1")).await;
    cluster.advance(MINUTE).await;
    let mut other = sets(&cluster).await.remove(0);
    let name = other.name_any();
    cluster.delete::<Deployment>("web").await;
    cluster.advance(MINUTE).await;
    if cluster
        .api::<ReplicaSet>()
        .get_opt(&name)
        .await
        .unwrap()
        .is_some()
    {
        cluster.delete::<ReplicaSet>(&name).await;
        cluster.advance(MINUTE).await;
    }
    other.metadata.owner_references = None;
    other.metadata.resource_version = None;
    other.metadata.uid = None;
    other
        .labels_mut()
        .insert("app".to_owned(), "other".to_owned());
    cluster
        .create::<ReplicaSet>(serde_json::to_value(other).unwrap())
        .await;
    cluster.create::<Deployment>(deployment(1, "app:1")).await;
    cluster.advance(MINUTE).await;
    let web = cluster.get::<Deployment>("web").await;
    let status = web.status.clone().unwrap();
    assert_eq!(status.collision_count, Some(1));
    assert_eq!(status.available_replicas, Some(1));
    let sets: Vec<ReplicaSet> = cluster.list().await;
    let own = sets.iter().find(|set| {
        set.owner_references()
            .iter()
            .any(|it| Some(&it.uid) == web.uid().as_ref())
    });
    assert_ne!(own.unwrap().name_any(), name);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_when_nothing_happens() {
    let cluster = cluster().await;
    cluster.create::<Deployment>(deployment(2, "app:1")).await;
    cluster.advance(MINUTE).await;
    let before = cluster.get::<Deployment>("web").await.resource_version();
    let set = sets(&cluster).await.remove(0).resource_version();
    cluster.advance(120 * MINUTE).await;
    assert_eq!(
        cluster.get::<Deployment>("web").await.resource_version(),
        before
    );
    assert_eq!(sets(&cluster).await.remove(0).resource_version(), set);
}
