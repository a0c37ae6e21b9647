//! The same plan gives the same trace.

use anyhow::Result;
use neap_trial::{generate::Chance, judge::Outcome, plan::Plan};
use serde::Serialize;

use super::lanes::{calm, play};
use crate::{campaign::Worker, supply::Swarm};

/// So many plans by chance,
const PLANS: usize = 200;
/// each in so many processes,
const PROCESSES: usize = 2;
/// and in each of them so often: together with others, with those in another order, and alone.
const TIMES: usize = 3;

/// What came of it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Replays {
    pub(super) plans: usize,
    /// How often one was played.
    pub(super) played: usize,
    /// How often that gave what it gave the first time.
    pub(super) equal: usize,
    /// Plans that gave another trace than the first time.
    pub(super) differing: Vec<String>,
}

pub(super) fn run(workloads: &[&'static str], seed: u64) -> Result<Replays> {
    let mut replays = Replays::default();
    let mut chance = Chance::new(seed);
    let mut workers = Vec::new();
    for _ in 0..PROCESSES {
        workers.push(Worker::start(seed)?);
    }
    let share = PLANS.div_ceil(workloads.len());
    for workload in workloads {
        let wanted = share.min(PLANS - replays.plans);
        let plans = by_chance(&mut workers[0], workload, wanted, &mut chance)?;
        replays.plans += plans.len();
        let mut all = Vec::new();
        for worker in &mut workers {
            all.extend(thrice(worker, &plans)?);
        }
        for (place, plan) in plans.iter().enumerate() {
            let equal = all.iter().filter(|run| alike(&run[place], &all[0][place]));
            let equal = equal.count();
            replays.played += all.len();
            replays.equal += equal;
            if equal < all.len() {
                replays.differing.push(plan.to_string());
            }
        }
    }
    Ok(replays)
}

/// Plans as campaigns make them by chance, of a run that has a seed of its own.
fn by_chance(
    worker: &mut Worker,
    workload: &'static str,
    wanted: usize,
    chance: &mut Chance,
) -> Result<Vec<Plan>> {
    let seed = chance.number();
    let (entries, _) = calm(worker, workload, seed)?;
    let plans = Swarm { workload, seed }.plans(&entries).plans;
    let apart = (plans.len() / wanted.max(1)).max(1);
    Ok(plans.into_iter().step_by(apart).take(wanted).collect())
}

fn thrice(worker: &mut Worker, plans: &[Plan]) -> Result<[Vec<Outcome>; TIMES]> {
    let together = play(worker, plans)?;
    let backwards: Vec<_> = plans.iter().rev().cloned().collect();
    let mut reversed = play(worker, &backwards)?;
    reversed.reverse();
    let mut alone = Vec::new();
    for plan in plans.chunks(1) {
        alone.extend(play(worker, plan)?);
    }
    Ok([together, reversed, alone])
}

/// What it cost is not part of what happened.
fn alike(one: &Outcome, other: &Outcome) -> bool {
    Outcome {
        cost: 0,
        ..one.clone()
    } == Outcome {
        cost: 0,
        ..other.clone()
    }
}
