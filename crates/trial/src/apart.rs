//! Runs in processes of their own, so that every run begins alike and ends without a trace.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use neap_replay::{Role, split};
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

/// What `work` comes to, in a process of its own. This one must have no other thread.
pub fn apart<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String>
where
    T: Serialize + DeserializeOwned,
{
    match split().map_err(|error| error.to_string())? {
        Role::Child(pen) => pen.finish(&serde_json::to_vec(&work()).unwrap_or_default()),
        Role::Parent(child) => {
            let told = child.wait(LONG).map_err(|error| error.to_string())?;
            let told = told.ok_or("a run took too long")?;
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
    apart(|| {
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
        next.unwrap_or_else(Outcome::silent)
    });
    Ok(outcomes.collect())
}

fn play_alone(
    workload: &Workload,
    plan: &Plan,
    reference: &Reference,
    ground: &Ground,
) -> Result<Outcome, String> {
    apart(|| {
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
    apart(|| {
        let (tell, told) = mpsc::sync_channel(plans.len());
        let tell = Arc::new(tell);
        let listener = move |index: usize, words: Option<Vec<u8>>| {
            let outcome = words.and_then(|words| serde_json::from_slice(&words).ok());
            // There is room for all of them.
            let _ = tell.try_send((index, outcome.unwrap_or_else(Outcome::silent)));
        };
        let director = Director::of_all(plans, Box::new(listener));
        let never = run_all(workload, seed, ground, reference, director)?;
        let mut outcomes: Vec<Option<Outcome>> = vec![None; plans.len()];
        for (index, outcome) in told.try_iter() {
            outcomes[index] = Some(outcome);
        }
        for index in never {
            outcomes[index] = Some(Outcome::never(plans[index].rules.len()));
        }
        let outcomes = outcomes.into_iter();
        Ok(outcomes
            .map(|outcome| outcome.unwrap_or_else(Outcome::silent))
            .collect())
    })
}
