//! How many pods may go. Pure.

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
    event::Note,
    status::{Statement, Truth, conditions},
};

use crate::workload::{Round, is_ready, owner_of, share, whole};

/// A pod that was to be taken away and is still there after this time has stayed.
const TAKING: Duration = Duration::from_mins(2);

/// Who is behind the pods, and how many he wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scale {
    pub(super) uid: String,
    pub(super) replicas: i32,
}

/// What is known.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) budget: &'a PodDisruptionBudget,
    /// Those that it selects.
    pub(super) pods: Vec<&'a Pod>,
    /// By the uids of the pods' controllers.
    pub(super) scales: BTreeMap<String, Scale>,
    pub(super) now: Timestamp,
}

/// What is to be said.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) status: PodDisruptionBudgetStatus,
    pub(super) notes: Vec<Note>,
    /// A pod that was to be taken away counts again then.
    pub(super) again: Option<Duration>,
}

pub(super) fn decide(facts: &Facts<'_>) -> Decision {
    let budget = facts.budget;
    let mut notes = Vec::new();
    if facts.pods.is_empty() {
        notes.push(Note::normal("NoPods", "No matching pods found"));
    }
    let former = budget.status.clone().unwrap_or_default();
    let (taken, again) = taken(&former, facts);
    let numbers = budget
        .spec
        .as_ref()
        .map(|spec| expected(spec, facts, &mut notes));
    let (expected, desired) = match numbers {
        Some(Ok(numbers)) => numbers,
        Some(Err(problem)) => return unknown(budget, former, notes, &problem, facts.now),
        None => (0, 0),
    };
    let healthy = facts.pods.iter().filter(|pod| {
        let stays = pod.metadata.deletion_timestamp.is_none();
        stays && is_ready(pod) && !taken.contains_key(&pod.name_any())
    });
    let healthy = whole(healthy.count());
    let allowed = if expected > 0 {
        (healthy - desired).max(0)
    } else {
        0
    };
    let statement = if allowed > 0 {
        Statement::new("DisruptionAllowed", Truth::True, "SufficientPods", "")
    } else {
        Statement::new("DisruptionAllowed", Truth::False, "InsufficientPods", "")
    };
    let generation = budget.metadata.generation;
    let status = PodDisruptionBudgetStatus {
        conditions: Some(said(&former, &statement, generation, facts.now)),
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        disrupted_pods: Some(taken).filter(|taken| !taken.is_empty()),
        disruptions_allowed: Some(allowed),
        expected_pods: Some(expected),
        observed_generation: generation,
    };
    Decision {
        status,
        notes,
        again,
    }
}

fn said(
    former: &PodDisruptionBudgetStatus,
    statement: &Statement,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    let known = former.conditions.as_deref().unwrap_or_default();
    conditions(known, std::slice::from_ref(statement), generation, now)
}

/// Nothing may go while nobody knows how many there should be.
fn unknown(
    budget: &PodDisruptionBudget,
    former: PodDisruptionBudgetStatus,
    mut notes: Vec<Note>,
    problem: &str,
    now: Timestamp,
) -> Decision {
    let message = format!("Failed to calculate the number of expected pods: {problem}");
    notes.push(Note::warning("CalculateExpectedPodCountFailed", message));
    let statement = Statement::new("DisruptionAllowed", Truth::False, "SyncFailed", problem);
    let generation = budget.metadata.generation;
    let status = PodDisruptionBudgetStatus {
        conditions: Some(said(&former, &statement, generation, now)),
        disruptions_allowed: Some(0),
        observed_generation: generation,
        current_healthy: former.current_healthy.or(Some(0)),
        desired_healthy: former.desired_healthy.or(Some(0)),
        expected_pods: former.expected_pods.or(Some(0)),
        ..former
    };
    Decision {
        status,
        notes,
        again: None,
    }
}

/// Pods that an eviction has taken and that are not yet seen to go.
fn taken(
    former: &PodDisruptionBudgetStatus,
    facts: &Facts<'_>,
) -> (BTreeMap<String, Time>, Option<Duration>) {
    let (mut taken, mut again) = (BTreeMap::new(), None::<Duration>);
    for (name, time) in former.disrupted_pods.iter().flatten() {
        let pod = facts.pods.iter().find(|pod| pod.name_any() == *name);
        let goes = pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some());
        let since = Duration::try_from(facts.now.duration_since(time.0)).unwrap_or_default();
        let left = TAKING.checked_sub(since).filter(|left| !left.is_zero());
        if let Some(left) = left.filter(|_| !goes) {
            taken.insert(name.clone(), time.clone());
            again = Some(again.map_or(left, |soonest| soonest.min(left)));
        }
    }
    (taken, again)
}

/// How many pods there should be, and how many of them must be well.
fn expected(
    spec: &PodDisruptionBudgetSpec,
    facts: &Facts<'_>,
    notes: &mut Vec<Note>,
) -> Result<(i32, i32), String> {
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(most), _) => {
            let all = scale(facts, notes)?;
            Ok((all, (all - share(most, all, Round::Up)).max(0)))
        }
        (None, Some(IntOrString::Int(least))) => Ok((whole(facts.pods.len()), *least)),
        (None, Some(least)) => {
            let all = scale(facts, notes)?;
            Ok((all, share(least, all, Round::Up)))
        }
        (None, None) => Ok((0, 0)),
    }
}

/// How many pods all that are behind them want, each asked once.
fn scale(facts: &Facts<'_>, notes: &mut Vec<Note>) -> Result<i32, String> {
    let (mut asked, mut sum, mut unmanaged) = (BTreeSet::new(), 0, false);
    for pod in &facts.pods {
        let Some(owner) = owner_of(*pod) else {
            unmanaged = true;
            continue;
        };
        let scale = facts.scales.get(&owner.uid);
        let scale =
            scale.ok_or_else(|| format!("found no controllers for pod {:?}", pod.name_any()))?;
        if asked.insert(&scale.uid) {
            sum += scale.replicas;
        }
    }
    if unmanaged {
        let message = "Pods selected by this PodDisruptionBudget were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.";
        notes.push(Note::warning("UnmanagedPods", message));
    }
    Ok(sum)
}
