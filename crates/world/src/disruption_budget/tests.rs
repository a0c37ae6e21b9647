use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::ReplicaSet,
    core::v1::{Event, Pod},
    policy::v1::PodDisruptionBudget,
};
use serde_json::{Value, json};

use super::decide::{ControllerScale, Facts, decide};
use crate::stage::{Kubelet, TestCluster};

const SETTLE_TIME: Duration = Duration::from_secs(10);

async fn cluster() -> TestCluster {
    let components = |context: &_| {
        let pods = crate::replica_set::component(context)?;
        Ok(vec![super::component(context)?, pods])
    };
    TestCluster::start(components)
        .await
        .with_kubelet(Kubelet::default())
}

fn set(replicas: i32) -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "app"}]},
            },
        },
    })
}

fn budget(field: &str, number: Value) -> Value {
    let mut budget = json!({
        "metadata": {"name": "calm"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    });
    budget["spec"][field] = number;
    budget
}

/// Expected, desired, healthy and allowed, with the condition.
fn summary(budget: &PodDisruptionBudget) -> String {
    let status = budget.status.clone().unwrap();
    assert_eq!(status.observed_generation, budget.metadata.generation);
    let numbers = [
        status.expected_pods,
        status.desired_healthy,
        status.current_healthy,
        status.disruptions_allowed,
    ]
    .map(Option::unwrap);
    let condition = &status.conditions.unwrap()[0];
    assert_eq!(condition.type_, "DisruptionAllowed");
    format!("{numbers:?} {} {}", condition.status, condition.reason)
}

#[tokio::test(start_paused = true)]
async fn a_budget_follows_its_pods_and_their_controllers() {
    let cluster = cluster().await;
    cluster
        .create::<PodDisruptionBudget>(budget("minAvailable", json!("50%")))
        .await;
    cluster.advance(SETTLE_TIME).await;
    let calm = async || summary(&cluster.get::<PodDisruptionBudget>("calm").await);
    assert_eq!(calm().await, "[0, 0, 0, 0] False InsufficientPods");
    let events: Vec<Event> = cluster.list().await;
    let reasons: Vec<_> = events
        .iter()
        .filter_map(|event| event.reason.clone())
        .collect();
    assert_eq!(reasons, ["NoPods"]);

    cluster.create::<ReplicaSet>(set(5)).await;
    cluster.advance(SETTLE_TIME).await;
    assert_eq!(calm().await, "[5, 3, 5, 2] True SufficientPods");
    cluster
        .patch::<ReplicaSet>("web", json!({"spec": {"replicas": 1}}))
        .await;
    cluster.advance(SETTLE_TIME).await;
    assert_eq!(calm().await, "[1, 1, 1, 0] False InsufficientPods");
}

#[tokio::test(start_paused = true)]
async fn a_changed_budget_is_reconciled() {
    let cluster = cluster().await;
    cluster.create::<ReplicaSet>(set(3)).await;
    cluster
        .create::<PodDisruptionBudget>(budget("maxUnavailable", json!(1)))
        .await;
    cluster.advance(SETTLE_TIME).await;
    let calm = async || summary(&cluster.get::<PodDisruptionBudget>("calm").await);
    assert_eq!(calm().await, "[3, 2, 3, 1] True SufficientPods");
    let none = json!({"spec": {"maxUnavailable": 0}});
    cluster.patch::<PodDisruptionBudget>("calm", none).await;
    cluster.advance(SETTLE_TIME).await;
    assert_eq!(calm().await, "[3, 3, 3, 0] False InsufficientPods");
}

#[tokio::test(start_paused = true)]
async fn a_changed_pod_of_two_budgets_gets_a_warning() {
    let cluster = cluster().await;
    let alone = json!({
        "metadata": {"name": "alone", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "app"}]},
    });
    cluster.create::<Pod>(alone).await;
    cluster.advance(SETTLE_TIME).await;
    for name in ["one", "two"] {
        let mut budget = budget("minAvailable", json!(1));
        budget["metadata"]["name"] = name.into();
        cluster.create::<PodDisruptionBudget>(budget).await;
    }
    cluster.advance(SETTLE_TIME).await;
    let warnings = async || -> Vec<(String, Option<i32>)> {
        let events: Vec<Event> = cluster.list().await;
        let twice = events.into_iter().filter(|event| {
            event.reason.as_deref() == Some("MultiplePodDisruptionBudgets")
                && event.involved_object.name.as_deref() == Some("alone")
        });
        twice
            .map(|event| (event.message.unwrap(), event.count))
            .collect()
    };
    let before = warnings().await.len();
    let touched = json!({"metadata": {"annotations": {"touched": "once"}}});
    cluster.patch::<Pod>("alone", touched).await;
    cluster.advance(SETTLE_TIME).await;
    let warned = warnings().await;
    assert_eq!((before, warned.len()), (0, 1));
    assert!(
        warned[0].0.contains("\"one\" arbitrarily"),
        "{}",
        warned[0].0
    );
    assert_eq!(warned[0].1, Some(1));
}

fn pod(name: &str, owner: Option<(&str, &str)>, ready: bool) -> Pod {
    let owners: Vec<_> = owner
        .into_iter()
        .map(|(kind, uid)| {
            json!({"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": uid, "controller": true})
        })
        .collect();
    let pod = json!({
        "metadata": {"name": name, "ownerReferences": owners},
        "status": {"conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
    });
    serde_json::from_value(pod).unwrap()
}

/// The status for these pods, of which the set `s` wants four, and the reasons of the Events.
fn decided(
    field: &str,
    number: Value,
    pods: &[Pod],
    disrupted: &Value,
) -> (String, Vec<&'static str>) {
    let mut budget = budget(field, number);
    budget["status"] = json!({"disruptedPods": disrupted});
    let mut budget: PodDisruptionBudget = serde_json::from_value(budget).unwrap();
    let scale = ControllerScale {
        uid: "s".to_owned(),
        replicas: 4,
    };
    let decision = decide(&Facts {
        budget: &budget,
        pods: pods.iter().collect(),
        scales: [("s".to_owned(), scale)].into(),
        now: "2026-01-01T00:10:00Z".parse().unwrap(),
    });
    let events = decision.events.iter().map(|event| event.reason).collect();
    budget.status = Some(decision.status);
    (summary(&budget), events)
}

#[test]
fn numbers_are_those_of_kubernetes() {
    let owned = Some(("ReplicaSet", "s"));
    let pods = ["a", "b", "c", "d"].map(|name| pod(name, owned, name != "d"));
    let none = json!({});
    let all_well = |field: &str, number: Value| decided(field, number, &pods, &none).0;
    let cases = [
        ("minAvailable", json!(2), "[4, 2, 3, 1] True SufficientPods"),
        (
            "minAvailable",
            json!("51%"),
            "[4, 3, 3, 0] False InsufficientPods",
        ),
        (
            "maxUnavailable",
            json!("30%"),
            "[4, 2, 3, 1] True SufficientPods",
        ),
        (
            "maxUnavailable",
            json!(9),
            "[4, 0, 3, 3] True SufficientPods",
        ),
    ];
    for (field, number, expected) in cases {
        assert_eq!(
            all_well(field, number.clone()),
            expected,
            "{field} {number}"
        );
    }
}

#[test]
fn unmanaged_pods_are_reported() {
    let alone = [pod("a", None, true)];
    let (summary, events) = decided("maxUnavailable", json!(1), &alone, &json!({}));
    assert_eq!(
        (summary.as_str(), &events[..]),
        (
            "[0, 0, 1, 0] False InsufficientPods",
            &["UnmanagedPods"][..]
        )
    );
    let (summary, events) = decided("minAvailable", json!(0), &alone, &json!({}));
    assert_eq!(
        (summary.as_str(), events.len()),
        ("[1, 0, 1, 1] True SufficientPods", 0)
    );
    let strange = [pod("a", Some(("Job", "j")), true)];
    let (summary, events) = decided("maxUnavailable", json!(1), &strange, &json!({}));
    assert_eq!(summary, "[0, 0, 0, 0] False SyncFailed");
    assert_eq!(events, ["CalculateExpectedPodCountFailed"]);
}

#[test]
fn an_evicted_pod_counts_again_if_it_stays() {
    let owned = Some(("ReplicaSet", "s"));
    let pods = ["a", "b", "c", "d"].map(|name| pod(name, owned, true));
    let disrupted = json!({"a": "2026-01-01T00:09:00Z", "b": "2026-01-01T00:07:59Z", "gone": "2026-01-01T00:09:59Z"});
    let (summary, _) = decided("minAvailable", json!(2), &pods, &disrupted);
    assert_eq!(summary, "[4, 2, 3, 1] True SufficientPods");
}
