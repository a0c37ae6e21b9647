//! From template to template.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_new_template_reaches_a_few_nodes_at_a_time() {
    let stage = stage(4).await;
    stage.create::<DaemonSet>(set()).await;
    stage.pass(MINUTE).await;
    stage
        .patch::<DaemonSet>("agent", image("app:2", "usual"))
        .await;
    for _ in 0..200 {
        stage.pass(Duration::from_millis(50)).await;
        let ready = pods(&stage)
            .await
            .iter()
            .filter(|pod| is_ready(pod))
            .count();
        assert!(ready >= 3, "{ready}");
    }
    let pods = pods(&stage).await;
    assert_eq!(images(&pods), ["app:2"; 4]);
    assert_eq!(status(&stage).await.updated_number_scheduled, Some(4));
    let mut numbers: Vec<_> = stage.list::<ControllerRevision>().await;
    numbers.sort_by_key(|it| it.revision);
    assert_eq!(
        numbers.iter().map(|it| it.revision).collect::<Vec<_>>(),
        [1, 2]
    );
}

#[tokio::test(start_paused = true)]
async fn a_bad_template_stops_and_a_better_one_goes_first_where_it_stopped() {
    let stage = stage(3).await;
    stage.create::<DaemonSet>(set()).await;
    stage.pass(MINUTE).await;
    stage
        .patch::<DaemonSet>("agent", image("app:2", "bad"))
        .await;
    stage.pass(10 * MINUTE).await;
    let stuck = pods(&stage).await;
    assert_eq!(stuck.iter().filter(|pod| is_ready(pod)).count(), 2);
    assert_eq!(status(&stage).await.number_unavailable, Some(1));
    stage
        .patch::<DaemonSet>("agent", image("app:3", "usual"))
        .await;
    stage.pass(MINUTE).await;
    assert_eq!(images(&pods(&stage).await), ["app:3"; 3]);
}

#[tokio::test(start_paused = true)]
async fn with_a_surge_no_node_is_ever_without() {
    let stage = stage(3).await;
    let mut surging = set();
    surging["spec"]["updateStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    stage.create::<DaemonSet>(surging).await;
    stage.pass(MINUTE).await;
    stage
        .patch::<DaemonSet>("agent", image("app:2", "usual"))
        .await;
    for _ in 0..200 {
        stage.pass(Duration::from_millis(50)).await;
        let pods = pods(&stage).await;
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        assert!(ready >= 3 && pods.len() <= 4, "{ready} of {}", pods.len());
    }
    assert_eq!(images(&pods(&stage).await), ["app:2"; 3]);
}

#[tokio::test(start_paused = true)]
async fn with_a_surge_the_old_pod_stays_until_the_new_one_was_ready_long_enough() {
    let stage = stage(2).await;
    let mut surging = set();
    surging["spec"]["minReadySeconds"] = 60.into();
    surging["spec"]["updateStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    stage.create::<DaemonSet>(surging).await;
    stage.pass(2 * MINUTE).await;
    stage
        .patch::<DaemonSet>("agent", image("app:2", "usual"))
        .await;
    let now = async || {
        let mut pods = pods(&stage).await;
        pods.sort_by_key(|pod| {
            (
                node_of(pod).map(str::to_owned),
                images(std::slice::from_ref(pod))[0].to_owned(),
            )
        });
        images(&pods).join(" ")
    };
    stage.pass(MINUTE / 2).await;
    let half = now().await;
    assert!(
        ["app:1 app:2 app:1", "app:1 app:1 app:2"].contains(&half.as_str()),
        "{half}"
    );
    stage.pass(MINUTE).await;
    let other = now().await;
    assert!(
        ["app:2 app:1 app:2", "app:1 app:2 app:2"].contains(&other.as_str()),
        "{other}"
    );
    stage.pass(2 * MINUTE).await;
    assert_eq!(now().await, "app:2 app:2");
}

#[tokio::test(start_paused = true)]
async fn on_delete_pods_stay_until_somebody_ends_them() {
    let stage = stage(2).await;
    let mut manual = set();
    manual["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    stage.create::<DaemonSet>(manual).await;
    stage.pass(MINUTE).await;
    stage
        .patch::<DaemonSet>("agent", image("app:2", "usual"))
        .await;
    stage.pass(10 * MINUTE).await;
    let old = pods(&stage).await;
    assert_eq!(images(&old), ["app:1", "app:1"]);
    stage.delete::<Pod>(&old[0].name_any()).await;
    stage.pass(MINUTE).await;
    assert_eq!(images(&pods(&stage).await), ["app:2", "app:1"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_counts_once_it_was_ready_long_enough() {
    let stage = stage(1).await;
    let mut careful = set();
    careful["spec"]["minReadySeconds"] = 120.into();
    stage.create::<DaemonSet>(careful).await;
    stage.pass(MINUTE).await;
    let now = status(&stage).await;
    assert_eq!((now.number_ready, now.number_available), (1, None));
    stage.pass(2 * MINUTE).await;
    assert_eq!(status(&stage).await.number_available, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_may_only_stay_goes_with_its_template() {
    for surge in [0, 1] {
        let stage = stage(2).await;
        let mut agent = set();
        agent["spec"]["updateStrategy"] = json!({
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 1 - surge},
        });
        stage.create::<DaemonSet>(agent).await;
        stage.pass(MINUTE).await;
        let full = json!([{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]);
        taint(&stage, "n0", full).await;
        stage.pass(MINUTE).await;
        assert_eq!(on(&pods(&stage).await), ["n0", "n1"]);
        stage
            .patch::<DaemonSet>("agent", image("app:2", "usual"))
            .await;
        stage.pass(MINUTE).await;
        let pods = pods(&stage).await;
        assert_eq!((on(&pods), images(&pods)), (vec!["n1"], vec!["app:2"]));
    }
}
