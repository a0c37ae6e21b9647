//! Runs in processes of their own, so that every run begins alike and ends without a trace.

use std::time::Duration;

use neap_replay::{Role, afresh, split};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Entry, Ground, Workload,
    judge::{Outcome, Reference, Violation},
    plan::Plan,
    poison,
    run::{self, run_all},
    seam::Director,
};

/// A batch of plans takes minutes at most.
const LONG: Duration = Duration::from_mins(20);
/// What is known of a plan of which nobody told anything.
const UNTOLD: &str = "nobody told what came of it";

/// What `work` comes to, in a process of its own that begins like any other with this seed. This
/// process must have no other thread, and must not have run a runtime since its ground was prepared:
/// runtimes count themselves.
pub fn apart<T>(seed: u64, work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String>
where
    T: Serialize + DeserializeOwned + Send,
{
    let role = split(LONG).map_err(|error| format!("no run can be played: {error}"))?;
    match role {
        Role::Child(pen) => {
            let done = afresh(seed, work).unwrap_or_else(|| Err("it panicked".to_owned()));
            pen.finish(&serde_json::to_vec(&done).unwrap_or_default())
        }
        Role::Parent(child) => {
            let told = child
                .wait()
                .map_err(|error| format!("a run did not end by itself: {error}"))?;
            serde_json::from_slice(&told).map_err(|_| "a run died without a word".to_owned())?
        }
    }
}

/// What a run without faults shows: what is right, what passed, and what is wrong even so.
pub fn calm(
    workload: &Workload,
    seed: u64,
    ground: &Ground,
) -> Result<(Reference, Vec<Entry>, Vec<Violation>), String> {
    apart(seed, || {
        let record = run::run(workload, &Plan::calm(workload.name, seed), ground)?;
        let (reference, violations) = Reference::new(&record);
        Ok((reference, record.entries, violations))
    })
}

/// What comes of each plan; all have the workload and the seed of the reference.
pub fn play(
    workload: &Workload,
    seed: u64,
    plans: &[Plan],
    reference: &Reference,
    ground: &Ground,
) -> Result<Vec<Outcome>, String> {
    let beside = |plan: &&Plan| poison::is_in(plan);
    let mut poisoned = plans.iter().filter(beside).peekable();
    if poisoned.peek().is_none() {
        return play_together(workload, seed, plans, reference, ground);
    }
    // What they begin with is not what the others begin with.
    let alone = poisoned.map(|plan| play_alone(workload, plan, reference, ground));
    let alone: Vec<Outcome> = alone.collect::<Result<_, _>>()?;
    let others: Vec<Plan> = plans.iter().filter(|plan| !beside(plan)).cloned().collect();
    let others = play_together(workload, seed, &others, reference, ground)?;
    let (mut alone, mut others) = (alone.into_iter(), others.into_iter());
    let outcomes = plans.iter().map(|plan| {
        let next = if poison::is_in(plan) {
            alone.next()
        } else {
            others.next()
        };
        next.unwrap_or_else(|| Outcome::silent(UNTOLD))
    });
    Ok(outcomes.collect())
}

fn play_alone(
    workload: &Workload,
    plan: &Plan,
    reference: &Reference,
    ground: &Ground,
) -> Result<Outcome, String> {
    apart(plan.seed, || {
        let record = run::run(workload, plan, ground)?;
        Ok(Outcome::of(&record, reference))
    })
}

fn play_together(
    workload: &Workload,
    seed: u64,
    plans: &[Plan],
    reference: &Reference,
    ground: &Ground,
) -> Result<Vec<Outcome>, String> {
    apart(seed, || {
        let director = Director::of_all(plans);
        let told = run_all(workload, seed, ground, reference, director)?;
        let mut outcomes = vec![Outcome::silent(UNTOLD); plans.len()];
        for (index, outcome) in told {
            outcomes[index] = outcome;
        }
        Ok(outcomes)
    })
}
