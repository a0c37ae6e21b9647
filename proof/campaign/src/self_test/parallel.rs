//! Distributes work over the cores.

use std::{collections::VecDeque, thread};

use anyhow::{Result, anyhow, bail};
use neap_trial::{TraceEntry, judge::PlanOutcome, judge::Violation, plan::Plan};
use parking_lot::Mutex;

use crate::{
    campaign::WorkerProcess,
    protocol::{WorkerRequest, WorkerResponse},
};

/// Runs `work` for each item and returns the results in order. Each core has its own worker.
pub(super) fn each<T: Send, R: Send>(
    items: Vec<T>,
    seed: u64,
    work: impl Fn(&mut WorkerProcess, T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let left = Mutex::new(items.into_iter().enumerate().collect::<VecDeque<_>>());
    let done = Mutex::new(Vec::new());
    let lane = || -> Result<()> {
        let mut worker = WorkerProcess::start(seed)?;
        loop {
            let Some((place, item)) = left.lock().pop_front() else {
                return Ok(());
            };
            let result = work(&mut worker, item)?;
            done.lock().push((place, result));
        }
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..cores).map(|_| scope.spawn(lane)).collect();
        for lane in lanes {
            lane.join().map_err(|_| anyhow!("a lane panicked"))??;
        }
        anyhow::Ok(())
    })?;
    let mut done = done.into_inner();
    done.sort_by_key(|(place, _)| *place);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// Plants a mistake, or none.
pub(super) fn plant(worker: &mut WorkerProcess, bug: Option<&str>) -> Result<()> {
    let bug = bug.map(str::to_owned);
    match worker.request(&WorkerRequest::Plant { bug })? {
        WorkerResponse::Planted => Ok(()),
        other => bail!("nothing could be planted: {other:?}"),
    }
}

/// The trace of a run without faults, and its violations.
pub(super) fn trace_without_faults(
    worker: &mut WorkerProcess,
    workload: &str,
    seed: u64,
) -> Result<(Vec<TraceEntry>, Vec<Violation>)> {
    let workload = workload.to_owned();
    match worker.request(&WorkerRequest::Show { workload, seed })? {
        WorkerResponse::Shown { entries, says } => Ok((entries, says)),
        other => bail!("a run without faults failed: {other:?}"),
    }
}

/// Plays plans of one workload.
pub(super) fn play(worker: &mut WorkerProcess, plans: &[Plan]) -> Result<Vec<PlanOutcome>> {
    let Some(first) = plans.first() else {
        return Ok(Vec::new());
    };
    let order = WorkerRequest::Play {
        workload: first.workload.clone(),
        seed: first.seed,
        plans: plans.iter().map(ToString::to_string).collect(),
    };
    match worker.request(&order)? {
        WorkerResponse::Played(outcomes) => Ok(outcomes),
        other => bail!("plans could not be played: {other:?}"),
    }
}
