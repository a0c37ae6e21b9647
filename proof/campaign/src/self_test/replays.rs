//! The same plan produces the same trace.

use anyhow::Result;
use neap_trial::{generate::SeededRng, judge::PlanOutcome, plan::Plan};
use serde::Serialize;

use super::parallel::{play, trace_without_faults};
use crate::{campaign::WorkerProcess, plan_queue::Swarm};

/// Random plans that are played.
const PLANS: usize = 200;
/// Processes that play each plan.
const PROCESSES: usize = 2;
/// Times that each process plays it: in a batch, in a batch in another order, and alone.
const TIMES: usize = 3;

#[derive(Debug, Default, Serialize)]
pub(super) struct Replays {
    pub(super) plans: usize,
    pub(super) played: usize,
    /// Runs with the same trace as the first one.
    pub(super) equal: usize,
    /// Plans that produced different traces.
    pub(super) differing: Vec<String>,
}

pub(super) fn run(workloads: &[&'static str], seed: u64) -> Result<Replays> {
    let mut replays = Replays::default();
    let mut rng = SeededRng::new(seed);
    let mut workers = Vec::new();
    for _ in 0..PROCESSES {
        workers.push(WorkerProcess::start(seed)?);
    }
    let share = PLANS.div_ceil(workloads.len());
    for workload in workloads {
        let wanted = share.min(PLANS - replays.plans);
        let plans = by_chance(&mut workers[0], workload, wanted, &mut rng)?;
        replays.plans += plans.len();
        let mut all = Vec::new();
        for worker in &mut workers {
            all.extend(play_three_times(worker, &plans)?);
        }
        for (place, plan) in plans.iter().enumerate() {
            let equal = all
                .iter()
                .filter(|run| same_trace(&run[place], &all[0][place]));
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

/// Random plans as campaigns generate them, for a run with another seed.
fn by_chance(
    worker: &mut WorkerProcess,
    workload: &'static str,
    wanted: usize,
    rng: &mut SeededRng,
) -> Result<Vec<Plan>> {
    let seed = rng.next_u64();
    let (entries, _) = trace_without_faults(worker, workload, seed)?;
    let plans = Swarm { workload, seed }.plans(&entries).plans;
    let step = (plans.len() / wanted.max(1)).max(1);
    Ok(plans.into_iter().step_by(step).take(wanted).collect())
}

fn play_three_times(
    worker: &mut WorkerProcess,
    plans: &[Plan],
) -> Result<[Vec<PlanOutcome>; TIMES]> {
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

/// Whether two outcomes are equal apart from their CPU time.
fn same_trace(one: &PlanOutcome, other: &PlanOutcome) -> bool {
    PlanOutcome {
        cost: 0,
        ..one.clone()
    } == PlanOutcome {
        cost: 0,
        ..other.clone()
    }
}
