//! Which nodes have a pod.

use super::*;

#[tokio::test(start_paused = true)]
async fn every_node_has_one() {
    let stage = stage(2).await;
    stage.create::<DaemonSet>(set()).await;
    stage.pass(MINUTE).await;
    let agent = stage.get::<DaemonSet>("agent").await;
    let pods = pods(&stage).await;
    assert_eq!(on(&pods), ["n0", "n1"]);
    let revision = stage.list::<ControllerRevision>().await.remove(0);
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
    let events: Vec<Event> = stage.list().await;
    assert_eq!(events.len(), 2);
    assert!(
        events
            .iter()
            .all(|it| it.reason.as_deref() == Some("SuccessfulCreate"))
    );

    let more = json!({"metadata": {"name": "n2"}});
    stage.create_for_all::<Node>(more).await;
    taint(&stage, "n2", json!([])).await;
    let gone = nodes(&stage).delete("n0", &DeleteParams::default()).await;
    gone.unwrap();
    stage.pass(MINUTE).await;
    assert_eq!(on(&super::pods(&stage).await), ["n1", "n2"]);
}

#[tokio::test(start_paused = true)]
async fn selectors_and_taints_keep_pods_away() {
    let stage = stage(4).await;
    let mut choosy = set();
    choosy["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    stage.create::<DaemonSet>(choosy).await;
    stage.pass(MINUTE).await;
    assert_eq!(on(&pods(&stage).await), ["n0", "n2"]);
    // One that is there may stay; one that goes does not come back.
    let full = json!([{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]);
    taint(&stage, "n0", full).await;
    stage.pass(MINUTE).await;
    assert_eq!(on(&pods(&stage).await), ["n0", "n2"]);
    let now = status(&stage).await;
    assert_eq!(
        (now.desired_number_scheduled, now.number_misscheduled),
        (1, 1)
    );
    let out = json!([{"key": "dedicated", "value": "x", "effect": "NoExecute"}]);
    taint(&stage, "n0", out).await;
    stage.pass(MINUTE).await;
    assert_eq!(on(&pods(&stage).await), ["n2"]);
    // Whatever a node suffers from, its pods stay.
    let unwell = json!([
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
    ]);
    taint(&stage, "n2", unwell).await;
    stage.pass(MINUTE).await;
    assert_eq!(on(&pods(&stage).await), ["n2"]);
    assert_eq!(status(&stage).await.number_misscheduled, 0);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fails_is_replaced_and_not_at_once() {
    let stage = stage(1).await;
    let mut short = set();
    short["spec"]["template"]["metadata"]["labels"]["fate"] = "short".into();
    stage.create::<DaemonSet>(short).await;
    stage.pass(Duration::from_secs(5)).await;
    let first = stage.list::<Pod>().await.remove(0);
    stage.pass(MINUTE).await;
    let events: Vec<Event> = stage.list().await;
    let failed = events
        .iter()
        .filter(|it| it.reason.as_deref() == Some("FailedDaemonPod"));
    let times: i32 = failed.filter_map(|it| it.count).sum();
    assert!((3..9).contains(&times), "{times} times");
    assert_ne!(stage.list::<Pod>().await.remove(0).uid(), first.uid());
}

#[tokio::test(start_paused = true)]
async fn pods_are_adopted_and_released_by_their_labels() {
    let stage = stage(1).await;
    stage.create::<DaemonSet>(set()).await;
    stage.pass(MINUTE).await;
    let pod = pods(&stage).await.remove(0);
    let other = json!({"metadata": {"labels": {"app": "other"}}});
    stage.patch::<Pod>(&pod.name_any(), other).await;
    stage.pass(MINUTE).await;
    let released = stage.get::<Pod>(&pod.name_any()).await;
    assert!(released.owner_references().is_empty());
    assert_eq!(pods(&stage).await.len(), 2, "and replaced");
    // Back again it is one too many, and the younger goes.
    let back = json!({"metadata": {"labels": {"app": "agent"}}});
    stage.patch::<Pod>(&pod.name_any(), back).await;
    stage.pass(MINUTE).await;
    let left = pods(&stage).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].uid(), pod.uid());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_when_nothing_happens() {
    let stage = stage(2).await;
    stage.create::<DaemonSet>(set()).await;
    stage.pass(MINUTE).await;
    let before = stage.get::<DaemonSet>("agent").await.resource_version();
    stage.pass(120 * MINUTE).await;
    assert_eq!(
        stage.get::<DaemonSet>("agent").await.resource_version(),
        before
    );
}
