//! Tests of which nodes have a pod.

use super::*;

#[tokio::test(start_paused = true)]
async fn every_node_has_a_pod() {
    let cluster = cluster(2).await;
    cluster.create::<DaemonSet>(set()).await;
    cluster.advance(MINUTE).await;
    let agent = cluster.get::<DaemonSet>("agent").await;
    let pods = pods(&cluster).await;
    assert_eq!(on(&pods), ["n0", "n1"]);
    let revision = cluster.list::<ControllerRevision>().await.remove(0);
    let hash = &revision.labels()["controller-revision-hash"];
    assert_eq!(revision.name_any(), format!("agent-{hash}"));
    let pod = &pods[0];
    assert_eq!(&pod.labels()["controller-revision-hash"], hash);
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("agent-"));
    assert_eq!(pod.owner_references(), [owned_by(&agent).unwrap()]);
    let tolerated = pod.spec.as_ref().and_then(|spec| spec.tolerations.clone());
    let tolerated: Vec<_> = tolerated
        .unwrap()
        .into_iter()
        .filter_map(|it| it.key)
        .collect();
    assert_eq!(tolerated.len(), 6, "{tolerated:?}");
    let expected = DaemonSetStatus {
        observed_generation: agent.metadata.generation,
        desired_number_scheduled: 2,
        current_number_scheduled: 2,
        number_ready: 2,
        number_available: Some(2),
        updated_number_scheduled: Some(2),
        ..DaemonSetStatus::default()
    };
    assert_eq!(agent.status, Some(expected));
    let events: Vec<Event> = cluster.list().await;
    assert_eq!(events.len(), 2);
    assert!(
        events
            .iter()
            .all(|it| it.reason.as_deref() == Some("SuccessfulCreate"))
    );

    let more = json!({"metadata": {"name": "n2"}});
    cluster.create_cluster_scoped::<Node>(more).await;
    taint(&cluster, "n2", json!([])).await;
    let gone = nodes(&cluster).delete("n0", &DeleteParams::default()).await;
    gone.unwrap();
    cluster.advance(MINUTE).await;
    assert_eq!(on(&super::pods(&cluster).await), ["n1", "n2"]);
}

#[tokio::test(start_paused = true)]
async fn selectors_and_taints_keep_pods_away() {
    let cluster = cluster(4).await;
    let mut choosy = set();
    choosy["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    cluster.create::<DaemonSet>(choosy).await;
    cluster.advance(MINUTE).await;
    assert_eq!(on(&pods(&cluster).await), ["n0", "n2"]);
    // A pod that is there remains; one that is deleted is not created again.
    let full = json!([{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]);
    taint(&cluster, "n0", full).await;
    cluster.advance(MINUTE).await;
    assert_eq!(on(&pods(&cluster).await), ["n0", "n2"]);
    let now = status(&cluster).await;
    assert_eq!(
        (now.desired_number_scheduled, now.number_misscheduled),
        (1, 1)
    );
    let out = json!([{"key": "dedicated", "value": "x", "effect": "NoExecute"}]);
    taint(&cluster, "n0", out).await;
    cluster.advance(MINUTE).await;
    assert_eq!(on(&pods(&cluster).await), ["n2"]);
    // The pods remain whatever the conditions of their node.
    let unwell = json!([
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
    ]);
    taint(&cluster, "n2", unwell).await;
    cluster.advance(MINUTE).await;
    assert_eq!(on(&pods(&cluster).await), ["n2"]);
    assert_eq!(status(&cluster).await.number_misscheduled, 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_pod_is_replaced_after_a_delay() {
    let cluster = cluster(1).await;
    let mut short = set();
    short["spec"]["template"]["metadata"]["labels"]["behavior"] = "short".into();
    cluster.create::<DaemonSet>(short).await;
    cluster.advance(Duration::from_secs(5)).await;
    let first = cluster.list::<Pod>().await.remove(0);
    cluster.advance(MINUTE).await;
    let events: Vec<Event> = cluster.list().await;
    let failed = events
        .iter()
        .filter(|it| it.reason.as_deref() == Some("FailedDaemonPod"));
    let times: i32 = failed.filter_map(|it| it.count).sum();
    assert!((3..9).contains(&times), "{times} times");
    assert_ne!(cluster.list::<Pod>().await.remove(0).uid(), first.uid());
}

#[tokio::test(start_paused = true)]
async fn pods_are_adopted_and_released_by_their_labels() {
    let cluster = cluster(1).await;
    cluster.create::<DaemonSet>(set()).await;
    cluster.advance(MINUTE).await;
    let pod = pods(&cluster).await.remove(0);
    let other = json!({"metadata": {"labels": {"app": "other"}}});
    cluster.patch::<Pod>(&pod.name_any(), other).await;
    cluster.advance(MINUTE).await;
    let released = cluster.get::<Pod>(&pod.name_any()).await;
    assert!(released.owner_references().is_empty());
    assert_eq!(pods(&cluster).await.len(), 2, "and replaced");
    // Once adopted again there is one too many, and the younger is deleted.
    let back = json!({"metadata": {"labels": {"app": "agent"}}});
    cluster.patch::<Pod>(&pod.name_any(), back).await;
    cluster.advance(MINUTE).await;
    let left = pods(&cluster).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].uid(), pod.uid());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_when_nothing_happens() {
    let cluster = cluster(2).await;
    cluster.create::<DaemonSet>(set()).await;
    cluster.advance(MINUTE).await;
    let before = cluster.get::<DaemonSet>("agent").await.resource_version();
    cluster.advance(120 * MINUTE).await;
    assert_eq!(
        cluster.get::<DaemonSet>("agent").await.resource_version(),
        before
    );
}
