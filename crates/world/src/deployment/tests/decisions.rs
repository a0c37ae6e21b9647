//! Tests of the pure decisions.

use k8s_openapi::api::apps::v1::DeploymentSpec;
use proptest::prelude::*;

use super::{
    super::{
        replica_sets::{ReplicaSetPlan, ReplicaSetPlans},
        rollout, scale,
        size::RolloutSize,
    },
    *,
};

/// The desired and the available pods of a ReplicaSet.
type Pods = (i32, i32);

fn size(replicas: i32, surge: i32, unavailable: i32) -> RolloutSize {
    RolloutSize {
        replicas,
        surge,
        unavailable,
    }
}

/// A ReplicaSet of this size and number of available pods, scaled for `whole`.
fn set(number: u8, replicas: i32, available: i32, whole: RolloutSize) -> ReplicaSet {
    serde_json::from_value(json!({
        "metadata": {
            "name": format!("web-{number}"),
            "creationTimestamp": format!("2026-01-01T00:00:{number:02}Z"),
            "annotations": {
                "deployment.kubernetes.io/desired-replicas": whole.replicas.to_string(),
                "deployment.kubernetes.io/max-replicas": whole.max_replicas().to_string(),
            },
        },
        "spec": {"replicas": replicas, "selector": {}},
        "status": {"replicas": replicas, "availableReplicas": available},
    }))
    .unwrap()
}

/// The last of `all` is the new one.
fn sets(all: &[ReplicaSet]) -> ReplicaSetPlans<'_> {
    let mut sets: Vec<ReplicaSetPlan<'_>> = all
        .iter()
        .map(|set| ReplicaSetPlan {
            live: Some(set),
            desired: set.clone(),
        })
        .collect();
    let new = sets.pop();
    ReplicaSetPlans { new, old: sets }
}

fn goals(sets: &ReplicaSetPlans<'_>) -> Vec<i32> {
    let old = sets.old.iter().chain(&sets.new);
    old.map(ReplicaSetPlan::replicas).collect()
}

#[test]
fn percentages_are_rounded_towards_availability() {
    let cases = [
        (10, json!("25%"), json!("25%"), size(10, 3, 2)),
        (3, json!("25%"), json!("25%"), size(3, 1, 0)),
        (1, json!(0), json!(0), size(1, 0, 1)),
        (2, json!(0), json!("10%"), size(2, 0, 1)),
        (2, json!(1), json!(5), size(2, 1, 2)),
        (0, json!("25%"), json!("25%"), size(0, 0, 0)),
    ];
    for (replicas, surge, unavailable, expected) in cases {
        let spec = json!({
            "replicas": replicas, "selector": {}, "template": {},
            "strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
        });
        let spec: DeploymentSpec = serde_json::from_value(spec).unwrap();
        assert_eq!(RolloutSize::of(&spec), expected, "{spec:?}");
    }
}

#[test]
fn one_step_of_a_rollout() {
    // (size, sets with the new one last, sizes after)
    let cases: [(RolloutSize, &[Pods], &[i32]); 7] = [
        (size(3, 1, 0), &[(3, 3), (0, 0)], &[3, 1]),
        (size(3, 1, 0), &[(3, 3), (1, 0)], &[3, 1]),
        (size(3, 1, 0), &[(3, 3), (1, 1)], &[2, 1]),
        (size(3, 0, 1), &[(3, 3), (0, 0)], &[2, 0]),
        // Pods that were never available are deleted first.
        (size(4, 1, 1), &[(2, 0), (3, 3), (0, 0)], &[0, 3, 0]),
        (size(2, 1, 0), &[(0, 0), (4, 4)], &[0, 2]),
        // It was scaled down a moment ago, and its status is older.
        (size(2, 2, 1), &[(2, 5), (2, 0)], &[1, 2]),
    ];
    for (size, now, after) in cases {
        let live: Vec<_> = (0..)
            .zip(now)
            .map(|(n, &(r, a))| set(n, r, a, size))
            .collect();
        let mut sets = sets(&live);
        rollout::rolling_update(&mut sets, size);
        assert_eq!(goals(&sets), after, "{size:?} {now:?}");
    }
}

#[test]
fn a_new_replica_count_is_spread_in_proportion() {
    // (size before, size after, sets, sizes after); the first as a real cluster did it.
    let cases: [(RolloutSize, RolloutSize, &[i32], &[i32]); 4] = [
        (size(5, 2, 1), size(10, 3, 2), &[4, 3], &[7, 6]),
        (size(10, 3, 2), size(5, 2, 1), &[8, 5], &[4, 3]),
        (size(10, 3, 2), size(0, 0, 0), &[8, 5], &[0, 0]),
        (size(10, 0, 1), size(11, 0, 1), &[5, 5], &[5, 6]),
    ];
    for (before, after, now, expected) in cases {
        let live: Vec<_> = (0..).zip(now).map(|(n, &r)| set(n, r, 0, before)).collect();
        let mut sets = sets(&live);
        assert!(scale::is_due(&sets, after));
        scale::scale(&mut sets, after, now.iter().sum(), false);
        assert_eq!(goals(&sets), expected, "{before:?} {after:?} {now:?}");
        assert!(!scale::is_due(&sets, after), "it is done at once");
    }
}

proptest! {
    #[test]
    fn every_step_stays_within_surge_and_availability(
        (replicas, surge, unavailable) in (0..20_i32, 0..5_i32, 0..5_i32),
        pods in proptest::collection::vec((0..12_i32, 0..12_i32), 1..5),
    ) {
        let least = i32::from(surge == 0);
        let size = size(replicas, surge, unavailable.max(least).min(replicas));
        let live: Vec<_> = (0..).zip(&pods).map(|(n, &(r, a))| set(n, r, a, size)).collect();
        let mut sets = sets(&live);
        let (all, available) = (sets.replicas(), sets.available());
        rollout::rolling_update(&mut sets, size);
        prop_assert!(sets.replicas() <= all.max(size.max_replicas()));
        let kept: i32 = sets.all().map(|set| set.available().min(set.replicas())).sum();
        prop_assert!(kept >= available.min(size.min_available()), "{kept} of {available}");
    }

    #[test]
    fn a_new_replica_count_is_reached_exactly(
        after in 1..40,
        surge in 0..5,
        pods in proptest::collection::vec(1..12_i32, 2..5),
    ) {
        let total = pods.iter().sum();
        let (before, after) = (size(total, 0, 1), size(after, surge, 1));
        let live: Vec<_> = (0..).zip(&pods).map(|(n, &r)| set(n, r, 0, before)).collect();
        let mut sets = sets(&live);
        scale::scale(&mut sets, after, total, false);
        prop_assert_eq!(sets.replicas(), after.max_replicas());
    }
}
