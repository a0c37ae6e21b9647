//! Runs in child processes, so that every run starts from the same state and leaves none behind.

use std::time::Duration;

use neap_determinism::{Role, fork_child, in_fresh_thread};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    ClusterTemplate, TraceEntry, Workload,
    fault_injector::PlanMatcher,
    judge::{PlanOutcome, Reference, Violation},
    plan::Plan,
    poisoned_objects,
    run::{self, run_all},
};

/// CPU time for a batch of plans, which takes minutes at most.
const BATCH_CPU_LIMIT: Duration = Duration::from_mins(20);
/// Reported for a plan whose child process returned no outcome.
const NO_OUTCOME: &str = "its process returned no outcome";

/// Runs `work` in a child process that starts like every other one with this seed. The calling
/// process must have no other thread, and must not have started a runtime since its template was
/// prepared, because runtimes count themselves.
pub fn in_child_process<T>(
    seed: u64,
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String>
where
    T: Serialize + DeserializeOwned + Send,
{
    let role =
        fork_child(BATCH_CPU_LIMIT).map_err(|error| format!("no run can be played: {error}"))?;
    match role {
        Role::Child(pen) => {
            let done = in_fresh_thread(seed, work).unwrap_or_else(|| Err("it panicked".to_owned()));
            pen.finish(&serde_json::to_vec(&done).unwrap_or_default())
        }
        Role::Parent(child) => {
            let returned = child
                .wait()
                .map_err(|error| format!("a run did not end by itself: {error}"))?;
            serde_json::from_slice(&returned)
                .map_err(|_| "a run died without a result".to_owned())?
        }
    }
}

/// Plays the workload without faults. Returns the reference, the trace, and the violations found
/// even so.
pub fn play_without_faults(
    workload: &Workload,
    seed: u64,
    template: &ClusterTemplate,
) -> Result<(Reference, Vec<TraceEntry>, Vec<Violation>), String> {
    in_child_process(seed, || {
        let record = run::run(
            workload,
            &Plan::without_faults(workload.name, seed),
            template,
        )?;
        let (reference, violations) = Reference::new(&record);
        Ok((reference, record.entries, violations))
    })
}

/// Plays the plans and returns their outcomes in order. All plans have the workload and the seed of
/// the reference.
pub fn play(
    workload: &Workload,
    seed: u64,
    plans: &[Plan],
    reference: &Reference,
    template: &ClusterTemplate,
) -> Result<Vec<PlanOutcome>, String> {
    let beside = |plan: &&Plan| poisoned_objects::is_in(plan);
    let mut poisoned = plans.iter().filter(beside).peekable();
    if poisoned.peek().is_none() {
        return play_together(workload, seed, plans, reference, template);
    }
    // Poisoned runs start with more objects than the others, so they share no prefix with them.
    let alone = poisoned.map(|plan| play_alone(workload, plan, reference, template));
    let alone: Vec<PlanOutcome> = alone.collect::<Result<_, _>>()?;
    let others: Vec<Plan> = plans.iter().filter(|plan| !beside(plan)).cloned().collect();
    let others = play_together(workload, seed, &others, reference, template)?;
    let (mut alone, mut others) = (alone.into_iter(), others.into_iter());
    let outcomes = plans.iter().map(|plan| {
        let next = if poisoned_objects::is_in(plan) {
            alone.next()
        } else {
            others.next()
        };
        next.unwrap_or_else(|| PlanOutcome::lost(NO_OUTCOME))
    });
    Ok(outcomes.collect())
}

fn play_alone(
    workload: &Workload,
    plan: &Plan,
    reference: &Reference,
    template: &ClusterTemplate,
) -> Result<PlanOutcome, String> {
    in_child_process(plan.seed, || {
        let record = run::run(workload, plan, template)?;
        Ok(PlanOutcome::of(&record, reference))
    })
}

fn play_together(
    workload: &Workload,
    seed: u64,
    plans: &[Plan],
    reference: &Reference,
    template: &ClusterTemplate,
) -> Result<Vec<PlanOutcome>, String> {
    in_child_process(seed, || {
        let matcher = PlanMatcher::of_all(plans);
        let returned = run_all(workload, seed, template, reference, matcher)?;
        let mut outcomes = vec![PlanOutcome::lost(NO_OUTCOME); plans.len()];
        for (index, outcome) in returned {
            outcomes[index] = outcome;
        }
        Ok(outcomes)
    })
}
