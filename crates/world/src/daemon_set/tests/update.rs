//! Tests of updates.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_new_template_reaches_a_few_nodes_at_a_time() {
    let cluster = cluster(4).await;
    cluster.create::<DaemonSet>(set()).await;
    cluster.advance(MINUTE).await;
    cluster
        .patch::<DaemonSet>("agent", image("app:2", "usual"))
        .await;
    for _ in 0..200 {
        cluster.advance(Duration::from_millis(50)).await;
        let ready = pods(&cluster)
            .await
            .iter()
            .filter(|pod| is_ready(pod))
            .count();
        assert!(ready >= 3, "{ready}");
    }
    let pods = pods(&cluster).await;
    assert_eq!(images(&pods), ["app:2"; 4]);
    assert_eq!(status(&cluster).await.updated_number_scheduled, Some(4));
    let mut numbers: Vec<_> = cluster.list::<ControllerRevision>().await;
    numbers.sort_by_key(|it| it.revision);
    assert_eq!(
        numbers.iter().map(|it| it.revision).collect::<Vec<_>>(),
        [1, 2]
    );
}

#[tokio::test(start_paused = true)]
async fn a_bad_template_stops_and_the_next_one_replaces_its_pods_first() {
    let cluster = cluster(3).await;
    cluster.create::<DaemonSet>(set()).await;
    cluster.advance(MINUTE).await;
    cluster
        .patch::<DaemonSet>("agent", image("app:2", "bad"))
        .await;
    cluster.advance(10 * MINUTE).await;
    let stuck = pods(&cluster).await;
    assert_eq!(stuck.iter().filter(|pod| is_ready(pod)).count(), 2);
    assert_eq!(status(&cluster).await.number_unavailable, Some(1));
    cluster
        .patch::<DaemonSet>("agent", image("app:3", "usual"))
        .await;
    cluster.advance(MINUTE).await;
    assert_eq!(images(&pods(&cluster).await), ["app:3"; 3]);
}

#[tokio::test(start_paused = true)]
async fn with_a_surge_every_node_always_has_a_ready_pod() {
    let cluster = cluster(3).await;
    let mut surging = set();
    surging["spec"]["updateStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    cluster.create::<DaemonSet>(surging).await;
    cluster.advance(MINUTE).await;
    cluster
        .patch::<DaemonSet>("agent", image("app:2", "usual"))
        .await;
    for _ in 0..200 {
        cluster.advance(Duration::from_millis(50)).await;
        let pods = pods(&cluster).await;
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        assert!(ready >= 3 && pods.len() <= 4, "{ready} of {}", pods.len());
    }
    assert_eq!(images(&pods(&cluster).await), ["app:2"; 3]);
}

#[tokio::test(start_paused = true)]
async fn with_a_surge_the_old_pod_stays_until_the_new_one_is_available() {
    let cluster = cluster(2).await;
    let mut surging = set();
    surging["spec"]["minReadySeconds"] = 60.into();
    surging["spec"]["updateStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    cluster.create::<DaemonSet>(surging).await;
    cluster.advance(2 * MINUTE).await;
    cluster
        .patch::<DaemonSet>("agent", image("app:2", "usual"))
        .await;
    let now = async || {
        let mut pods = pods(&cluster).await;
        pods.sort_by_key(|pod| {
            (
                node_of(pod).map(str::to_owned),
                images(std::slice::from_ref(pod))[0].to_owned(),
            )
        });
        images(&pods).join(" ")
    };
    cluster.advance(MINUTE / 2).await;
    let half = now().await;
    assert!(
        ["app:1 app:2 app:1", "app:1 app:1 app:2"].contains(&half.as_str()),
        "{half}"
    );
    cluster.advance(MINUTE).await;
    let other = now().await;
    assert!(
        ["app:2 app:1 app:2", "app:1 app:2 app:2"].contains(&other.as_str()),
        "{other}"
    );
    cluster.advance(2 * MINUTE).await;
    assert_eq!(now().await, "app:2 app:2");
}

#[tokio::test(start_paused = true)]
async fn on_delete_pods_stay_until_they_are_deleted() {
    let cluster = cluster(2).await;
    let mut manual = set();
    manual["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    cluster.create::<DaemonSet>(manual).await;
    cluster.advance(MINUTE).await;
    cluster
        .patch::<DaemonSet>("agent", image("app:2", "usual"))
        .await;
    cluster.advance(10 * MINUTE).await;
    let old = pods(&cluster).await;
    assert_eq!(images(&old), ["app:1", "app:1"]);
    cluster.delete::<Pod>(&old[0].name_any()).await;
    cluster.advance(MINUTE).await;
    assert_eq!(images(&pods(&cluster).await), ["app:2", "app:1"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_available_after_min_ready_seconds() {
    let cluster = cluster(1).await;
    let mut careful = set();
    careful["spec"]["minReadySeconds"] = 120.into();
    cluster.create::<DaemonSet>(careful).await;
    cluster.advance(MINUTE).await;
    let now = status(&cluster).await;
    assert_eq!((now.number_ready, now.number_available), (1, None));
    cluster.advance(2 * MINUTE).await;
    assert_eq!(status(&cluster).await.number_available, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_tainted_node_is_deleted_by_an_update() {
    for surge in [0, 1] {
        let cluster = cluster(2).await;
        let mut agent = set();
        agent["spec"]["updateStrategy"] = json!({
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 1 - surge},
        });
        cluster.create::<DaemonSet>(agent).await;
        cluster.advance(MINUTE).await;
        let full = json!([{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]);
        taint(&cluster, "n0", full).await;
        cluster.advance(MINUTE).await;
        assert_eq!(on(&pods(&cluster).await), ["n0", "n1"]);
        cluster
            .patch::<DaemonSet>("agent", image("app:2", "usual"))
            .await;
        cluster.advance(MINUTE).await;
        let pods = pods(&cluster).await;
        assert_eq!((on(&pods), images(&pods)), (vec!["n1"], vec!["app:2"]));
    }
}
