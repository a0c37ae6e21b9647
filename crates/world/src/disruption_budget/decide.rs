//! How many pods may be disrupted. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::Pod,
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus},
    },
    apimachinery::pkg::{apis::meta::v1::Time, util::intstr::IntOrString},
};
use kube::ResourceExt;
use neap_kit::{
    event::EventDraft,
    status::{ConditionStatus, ConditionUpdate, updated_conditions},
};

use crate::workload::{Round, is_ready, owner_of, scaled_value, to_i32};

/// The time after which an evicted pod that still exists counts again.
const DELETION_TIMEOUT: Duration = Duration::from_mins(2);

/// The workload that controls pods, and its replica count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ControllerScale {
    pub(super) uid: String,
    pub(super) replicas: i32,
}

#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) budget: &'a PodDisruptionBudget,
    /// The pods that it selects.
    pub(super) pods: Vec<&'a Pod>,
    /// The scales by the uids of the pods' controllers.
    pub(super) scales: BTreeMap<String, ControllerScale>,
    pub(super) now: Timestamp,
}

#[derive(Debug)]
pub(super) struct Decision {
    pub(super) status: PodDisruptionBudgetStatus,
    pub(super) events: Vec<EventDraft>,
    /// The time until an evicted pod counts again.
    pub(super) requeue_after: Option<Duration>,
}

pub(super) fn decide(facts: &Facts<'_>) -> Decision {
    let budget = facts.budget;
    let mut events = Vec::new();
    if facts.pods.is_empty() {
        events.push(EventDraft::normal("NoPods", "No matching pods found"));
    }
    let former = budget.status.clone().unwrap_or_default();
    let (disrupted, requeue_after) = disrupted(&former, facts);
    let numbers = budget
        .spec
        .as_ref()
        .map(|spec| expected(spec, facts, &mut events));
    let (expected, desired) = match numbers {
        Some(Ok(numbers)) => numbers,
        Some(Err(problem)) => return sync_failed(budget, former, events, &problem, facts.now),
        None => (0, 0),
    };
    let healthy = facts.pods.iter().filter(|pod| {
        let stays = pod.metadata.deletion_timestamp.is_none();
        stays && is_ready(pod) && !disrupted.contains_key(&pod.name_any())
    });
    let healthy = to_i32(healthy.count());
    let allowed = if expected > 0 {
        (healthy - desired).max(0)
    } else {
        0
    };
    let update = if allowed > 0 {
        ConditionUpdate::new(
            "DisruptionAllowed",
            ConditionStatus::True,
            "SufficientPods",
            "",
        )
    } else {
        ConditionUpdate::new(
            "DisruptionAllowed",
            ConditionStatus::False,
            "InsufficientPods",
            "",
        )
    };
    let generation = budget.metadata.generation;
    let status = PodDisruptionBudgetStatus {
        conditions: Some(conditions(&former, &update, generation, facts.now)),
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        disrupted_pods: Some(disrupted).filter(|disrupted| !disrupted.is_empty()),
        disruptions_allowed: Some(allowed),
        expected_pods: Some(expected),
        observed_generation: generation,
    };
    Decision {
        status,
        events,
        requeue_after,
    }
}

fn conditions(
    former: &PodDisruptionBudgetStatus,
    update: &ConditionUpdate,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    let current = former.conditions.as_deref().unwrap_or_default();
    updated_conditions(current, std::slice::from_ref(update), generation, now)
}

/// No disruption is allowed while the expected number of pods is unknown.
fn sync_failed(
    budget: &PodDisruptionBudget,
    former: PodDisruptionBudgetStatus,
    mut events: Vec<EventDraft>,
    problem: &str,
    now: Timestamp,
) -> Decision {
    let message = format!("Failed to calculate the number of expected pods: {problem}");
    events.push(EventDraft::warning(
        "CalculateExpectedPodCountFailed",
        message,
    ));
    let update = ConditionUpdate::new(
        "DisruptionAllowed",
        ConditionStatus::False,
        "SyncFailed",
        problem,
    );
    let generation = budget.metadata.generation;
    let status = PodDisruptionBudgetStatus {
        conditions: Some(conditions(&former, &update, generation, now)),
        disruptions_allowed: Some(0),
        observed_generation: generation,
        current_healthy: former.current_healthy.or(Some(0)),
        desired_healthy: former.desired_healthy.or(Some(0)),
        expected_pods: former.expected_pods.or(Some(0)),
        ..former
    };
    Decision {
        status,
        events,
        requeue_after: None,
    }
}

/// Pods that were evicted and whose deletion is not observed yet.
fn disrupted(
    former: &PodDisruptionBudgetStatus,
    facts: &Facts<'_>,
) -> (BTreeMap<String, Time>, Option<Duration>) {
    let (mut disrupted, mut requeue_after) = (BTreeMap::new(), None::<Duration>);
    for (name, time) in former.disrupted_pods.iter().flatten() {
        let pod = facts.pods.iter().find(|pod| pod.name_any() == *name);
        let goes = pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some());
        let since = Duration::try_from(facts.now.duration_since(time.0)).unwrap_or_default();
        let left = DELETION_TIMEOUT
            .checked_sub(since)
            .filter(|left| !left.is_zero());
        if let Some(left) = left.filter(|_| !goes) {
            disrupted.insert(name.clone(), time.clone());
            requeue_after = Some(requeue_after.map_or(left, |soonest| soonest.min(left)));
        }
    }
    (disrupted, requeue_after)
}

/// The expected number of pods, and how many of them must be healthy.
fn expected(
    spec: &PodDisruptionBudgetSpec,
    facts: &Facts<'_>,
    events: &mut Vec<EventDraft>,
) -> Result<(i32, i32), String> {
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(most), _) => {
            let all = scale(facts, events)?;
            Ok((all, (all - scaled_value(most, all, Round::Up)).max(0)))
        }
        (None, Some(IntOrString::Int(least))) => Ok((to_i32(facts.pods.len()), *least)),
        (None, Some(least)) => {
            let all = scale(facts, events)?;
            Ok((all, scaled_value(least, all, Round::Up)))
        }
        (None, None) => Ok((0, 0)),
    }
}

/// The sum of the replica counts of all controllers, each counted once.
fn scale(facts: &Facts<'_>, events: &mut Vec<EventDraft>) -> Result<i32, String> {
    let (mut counted, mut sum, mut unmanaged) = (BTreeSet::new(), 0, false);
    for pod in &facts.pods {
        let Some(owner) = owner_of(*pod) else {
            unmanaged = true;
            continue;
        };
        let scale = facts.scales.get(&owner.uid);
        let scale =
            scale.ok_or_else(|| format!("found no controllers for pod {:?}", pod.name_any()))?;
        if counted.insert(&scale.uid) {
            sum += scale.replicas;
        }
    }
    if unmanaged {
        let message = "Pods selected by this PodDisruptionBudget were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.";
        events.push(EventDraft::warning("UnmanagedPods", message));
    }
    Ok(sum)
}
