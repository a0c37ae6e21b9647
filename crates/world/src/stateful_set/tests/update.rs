//! Tests of updates.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_new_template_is_rolled_out_from_the_top_down_to_the_partition() {
    let cluster = cluster().await;
    cluster.create::<StatefulSet>(set(3)).await;
    cluster.advance(MINUTE).await;
    let first = status(&cluster).await.current_revision.unwrap();
    let strategy = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}});
    cluster.patch::<StatefulSet>("db", strategy).await;
    cluster
        .patch::<StatefulSet>("db", image("app:2", "usual"))
        .await;
    cluster.advance(MINUTE).await;
    assert_eq!(images(&pods(&cluster).await), ["app:1", "app:1", "app:2"]);
    let half = status(&cluster).await;
    assert_eq!(half.current_revision.as_ref(), Some(&first));
    assert_eq!(
        (half.current_replicas, half.updated_replicas),
        (Some(2), Some(1))
    );
    // Below the partition a pod is created again from the former template.
    cluster.delete::<Pod>("db-0").await;
    cluster.advance(MINUTE).await;
    assert_eq!(images(&pods(&cluster).await), ["app:1", "app:1", "app:2"]);

    let strategy = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
    cluster.patch::<StatefulSet>("db", strategy).await;
    for _ in 0..100 {
        cluster.advance(Duration::from_millis(100)).await;
        let ready = pods(&cluster)
            .await
            .iter()
            .filter(|pod| is_ready(pod))
            .count();
        assert!(ready >= 2, "{ready}");
    }
    assert_eq!(images(&pods(&cluster).await), ["app:2", "app:2", "app:2"]);
    let done = status(&cluster).await;
    assert_eq!(done.current_revision, done.update_revision);
    assert_ne!(done.current_revision, Some(first));
    assert_eq!(done.current_replicas, Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_bad_template_stops_at_the_first_pod() {
    let cluster = cluster().await;
    cluster.create::<StatefulSet>(set(3)).await;
    cluster.advance(MINUTE).await;
    cluster
        .patch::<StatefulSet>("db", image("app:2", "bad"))
        .await;
    cluster.advance(10 * MINUTE).await;
    assert_eq!(images(&pods(&cluster).await), ["app:1", "app:1", "app:2"]);
}

#[tokio::test(start_paused = true)]
async fn max_unavailable_pods_are_replaced_at_a_time() {
    let cluster = cluster().await;
    let mut wide = set(5);
    wide["spec"]["updateStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}});
    cluster.create::<StatefulSet>(wide).await;
    cluster.advance(MINUTE).await;
    cluster
        .patch::<StatefulSet>("db", image("app:2", "bad"))
        .await;
    cluster.advance(10 * MINUTE).await;
    // Both were deleted together; they are created in order, and the first of them never becomes
    // ready.
    let pods = pods(&cluster).await;
    assert_eq!(names(&pods), ["db-0", "db-1", "db-2", "db-3"]);
    assert_eq!(images(&pods), ["app:1", "app:1", "app:1", "app:2"]);
}

#[tokio::test(start_paused = true)]
async fn on_delete_pods_stay_until_they_are_deleted() {
    let cluster = cluster().await;
    let mut manual = set(2);
    manual["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    cluster.create::<StatefulSet>(manual).await;
    cluster.advance(MINUTE).await;
    cluster
        .patch::<StatefulSet>("db", image("app:2", "usual"))
        .await;
    cluster.advance(10 * MINUTE).await;
    assert_eq!(images(&pods(&cluster).await), ["app:1", "app:1"]);
    cluster.delete::<Pod>("db-0").await;
    cluster.advance(MINUTE).await;
    assert_eq!(images(&pods(&cluster).await), ["app:2", "app:1"]);
    assert_eq!(status(&cluster).await.updated_replicas, Some(1));
}

#[tokio::test(start_paused = true)]
async fn revisions_are_numbered_reused_and_truncated() {
    let cluster = cluster().await;
    let mut short = set(1);
    short["spec"]["revisionHistoryLimit"] = 1.into();
    cluster.create::<StatefulSet>(short).await;
    cluster.advance(MINUTE).await;
    let first = revisions(&cluster).await.remove(0);
    assert_eq!(first.revision, 1);
    assert_eq!(first.labels()["app"], "db");
    assert_eq!(first.annotations()["team"], "a");
    let hash = &first.labels()["controller.kubernetes.io/hash"];
    assert_eq!(first.name_any(), format!("db-{hash}"));
    let data = first.data.clone().unwrap().0;
    assert_eq!(data["spec"]["template"]["$patch"], "replace");

    cluster
        .patch::<StatefulSet>("db", image("app:2", "usual"))
        .await;
    cluster.advance(MINUTE).await;
    let mut back = image("app:1", "usual");
    back["spec"]["template"]["metadata"]["labels"]["behavior"] = Value::Null;
    cluster.patch::<StatefulSet>("db", back).await;
    cluster.advance(MINUTE).await;
    let now = revisions(&cluster).await;
    let ordinals: Vec<_> = now.iter().map(|it| it.revision).collect();
    assert_eq!(ordinals, [2, 3]);
    assert_eq!(now[1].uid(), first.uid(), "the first came back");

    cluster
        .patch::<StatefulSet>("db", image("app:3", "usual"))
        .await;
    cluster.advance(MINUTE).await;
    let ordinals: Vec<_> = revisions(&cluster)
        .await
        .iter()
        .map(|it| it.revision)
        .collect();
    assert_eq!(ordinals, [3, 4]);
}
