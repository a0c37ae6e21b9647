//! Work for every core.

use std::{collections::VecDeque, thread};

use anyhow::{Result, anyhow, bail};
use neap_trial::{Entry, judge::Outcome, judge::Violation, plan::Plan};
use parking_lot::Mutex;

use crate::{
    campaign::Worker,
    message::{Answer, Order},
};

/// What `work` makes of each item, in their order. Each core has a worker of its own.
pub(super) fn each<T: Send, R: Send>(
    items: Vec<T>,
    seed: u64,
    work: impl Fn(&mut Worker, T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let left = Mutex::new(items.into_iter().enumerate().collect::<VecDeque<_>>());
    let done = Mutex::new(Vec::new());
    let lane = || -> Result<()> {
        let mut worker = Worker::start(seed)?;
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
pub(super) fn plant(worker: &mut Worker, bug: Option<&str>) -> Result<()> {
    let bug = bug.map(str::to_owned);
    match worker.ask(&Order::Plant { bug })? {
        Answer::Planted => Ok(()),
        other => bail!("nothing could be planted: {other:?}"),
    }
}

/// What a run without faults shows, and what is wrong even so.
pub(super) fn calm(
    worker: &mut Worker,
    workload: &str,
    seed: u64,
) -> Result<(Vec<Entry>, Vec<Violation>)> {
    let workload = workload.to_owned();
    match worker.ask(&Order::Show { workload, seed })? {
        Answer::Shown { entries, says } => Ok((entries, says)),
        other => bail!("a run without faults failed: {other:?}"),
    }
}

/// What comes of plans of one workload.
pub(super) fn play(worker: &mut Worker, plans: &[Plan]) -> Result<Vec<Outcome>> {
    let Some(first) = plans.first() else {
        return Ok(Vec::new());
    };
    let order = Order::Play {
        workload: first.workload.clone(),
        seed: first.seed,
        plans: plans.iter().map(ToString::to_string).collect(),
    };
    match worker.ask(&order)? {
        Answer::Played(outcomes) => Ok(outcomes),
        other => bail!("plans could not be played: {other:?}"),
    }
}
