//! From template to template.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_new_template_comes_from_the_top_down_to_the_partition() {
    let stage = stage().await;
    stage.create::<StatefulSet>(set(3)).await;
    stage.pass(MINUTE).await;
    let first = status(&stage).await.current_revision.unwrap();
    let strategy = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}});
    stage.patch::<StatefulSet>("db", strategy).await;
    stage
        .patch::<StatefulSet>("db", image("app:2", "usual"))
        .await;
    stage.pass(MINUTE).await;
    assert_eq!(images(&pods(&stage).await), ["app:1", "app:1", "app:2"]);
    let half = status(&stage).await;
    assert_eq!(half.current_revision.as_ref(), Some(&first));
    assert_eq!(
        (half.current_replicas, half.updated_replicas),
        (Some(2), Some(1))
    );
    // Below the partition a pod comes back as it was.
    stage.delete::<Pod>("db-0").await;
    stage.pass(MINUTE).await;
    assert_eq!(images(&pods(&stage).await), ["app:1", "app:1", "app:2"]);

    let strategy = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
    stage.patch::<StatefulSet>("db", strategy).await;
    for _ in 0..100 {
        stage.pass(Duration::from_millis(100)).await;
        let ready = pods(&stage)
            .await
            .iter()
            .filter(|pod| is_ready(pod))
            .count();
        assert!(ready >= 2, "{ready}");
    }
    assert_eq!(images(&pods(&stage).await), ["app:2", "app:2", "app:2"]);
    let done = status(&stage).await;
    assert_eq!(done.current_revision, done.update_revision);
    assert_ne!(done.current_revision, Some(first));
    assert_eq!(done.current_replicas, Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_bad_template_stops_at_the_first_pod() {
    let stage = stage().await;
    stage.create::<StatefulSet>(set(3)).await;
    stage.pass(MINUTE).await;
    stage
        .patch::<StatefulSet>("db", image("app:2", "bad"))
        .await;
    stage.pass(10 * MINUTE).await;
    assert_eq!(images(&pods(&stage).await), ["app:1", "app:1", "app:2"]);
}

#[tokio::test(start_paused = true)]
async fn as_many_at_a_time_as_may_be_unavailable() {
    let stage = stage().await;
    let mut wide = set(5);
    wide["spec"]["updateStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}});
    stage.create::<StatefulSet>(wide).await;
    stage.pass(MINUTE).await;
    stage
        .patch::<StatefulSet>("db", image("app:2", "bad"))
        .await;
    stage.pass(10 * MINUTE).await;
    // Both went together; they come back in order, and the first of them never gets well.
    let pods = pods(&stage).await;
    assert_eq!(names(&pods), ["db-0", "db-1", "db-2", "db-3"]);
    assert_eq!(images(&pods), ["app:1", "app:1", "app:1", "app:2"]);
}

#[tokio::test(start_paused = true)]
async fn on_delete_pods_stay_until_somebody_ends_them() {
    let stage = stage().await;
    let mut manual = set(2);
    manual["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    stage.create::<StatefulSet>(manual).await;
    stage.pass(MINUTE).await;
    stage
        .patch::<StatefulSet>("db", image("app:2", "usual"))
        .await;
    stage.pass(10 * MINUTE).await;
    assert_eq!(images(&pods(&stage).await), ["app:1", "app:1"]);
    stage.delete::<Pod>("db-0").await;
    stage.pass(MINUTE).await;
    assert_eq!(images(&pods(&stage).await), ["app:2", "app:1"]);
    assert_eq!(status(&stage).await.updated_replicas, Some(1));
}

#[tokio::test(start_paused = true)]
async fn revisions_are_numbered_come_back_and_are_forgotten() {
    let stage = stage().await;
    let mut short = set(1);
    short["spec"]["revisionHistoryLimit"] = 1.into();
    stage.create::<StatefulSet>(short).await;
    stage.pass(MINUTE).await;
    let first = revisions(&stage).await.remove(0);
    assert_eq!(first.revision, 1);
    assert_eq!(first.labels()["app"], "db");
    assert_eq!(first.annotations()["team"], "a");
    let hash = &first.labels()["controller.kubernetes.io/hash"];
    assert_eq!(first.name_any(), format!("db-{hash}"));
    let data = first.data.clone().unwrap().0;
    assert_eq!(data["spec"]["template"]["$patch"], "replace");

    stage
        .patch::<StatefulSet>("db", image("app:2", "usual"))
        .await;
    stage.pass(MINUTE).await;
    let mut back = image("app:1", "usual");
    back["spec"]["template"]["metadata"]["labels"]["fate"] = Value::Null;
    stage.patch::<StatefulSet>("db", back).await;
    stage.pass(MINUTE).await;
    let now = revisions(&stage).await;
    let numbers: Vec<_> = now.iter().map(|it| it.revision).collect();
    assert_eq!(numbers, [2, 3]);
    assert_eq!(now[1].uid(), first.uid(), "the first came back");

    stage
        .patch::<StatefulSet>("db", image("app:3", "usual"))
        .await;
    stage.pass(MINUTE).await;
    let numbers: Vec<_> = revisions(&stage)
        .await
        .iter()
        .map(|it| it.revision)
        .collect();
    assert_eq!(numbers, [3, 4]);
}
