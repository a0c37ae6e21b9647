//! Runs a cell, from its first cycle to its last.

use std::{sync::atomic::Ordering, time::Duration};

use anyhow::{Context, Result};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::{
    Stopwatch,
    cell::Cell,
    ledger::RequestTally,
    simulation::{Simulation, WAIT_TIMEOUT},
};

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunOptions {
    pub cell: Cell,
    /// Cycles at most.
    pub cycles: u64,
    /// Cycles at least, whatever the budget; one is always run.
    pub min_cycles: u64,
    /// Real time at most, beyond the least number of cycles.
    pub budget: Option<Duration>,
    /// The seed of all random numbers.
    pub seed: u64,
    pub deviation: Deviation,
}

/// A deviation from the ordinary run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deviation {
    #[default]
    None,
    /// Terminating pods accept no connection. That loses requests, whatever the operator does.
    PodsLeaveAtOnce,
    /// A user writes replicas without involving the operator. That loses requests, too.
    ScaledByUser,
    /// A resolver terminates while it holds requests.
    ResolverTerminates,
    /// The same, and pods take longer to start than it waits for them.
    ResolverTerminatesFirst,
}

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct SimulatedOutcome {
    pub cell: Cell,
    /// Cycles that were requested.
    pub asked: u64,
    /// Cycles that were run.
    pub cycles: u64,
    /// Whether the time was limited, so that fewer may have been run.
    pub budgeted: bool,
    pub tally: RequestTally,
    /// How often pods were told to terminate while a node with a resolver led to none.
    pub unproved: u64,
    /// Connections that a resolver cut off when it terminated.
    pub cut_off: u64,
    /// Virtual seconds that passed.
    pub played_seconds: u64,
    /// Real milliseconds that it took.
    pub took_ms: u64,
}

impl SimulatedOutcome {
    /// Whether nothing went wrong and the test was complete: with as many cycles as requested, and
    /// with a request through a resolver in each, because nothing else wakes a service here.
    pub fn holds(&self) -> bool {
        let tried = self.is_whole() || self.budgeted && self.cycles > 0;
        let through = self.tally.through >= self.cycles.max(1);
        tried && through && self.tally.holds() && self.unproved == 0 && self.cut_off == 0
    }

    /// Whether as many cycles were run as requested.
    pub fn is_whole(&self) -> bool {
        self.cycles >= self.asked
    }
}

/// Runs a cell on its own runtime with a paused clock.
pub fn run_cell(options: RunOptions) -> Result<SimulatedOutcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    let outcome = runtime.block_on(run(options));
    outcome.with_context(|| format!("cell {}", options.cell))
}

async fn run(options: RunOptions) -> Result<SimulatedOutcome> {
    let watch = Stopwatch::start();
    let simulation = Simulation::open(options).await?;
    let clock = simulation.environment.clock;
    simulation.wait_until_serving().await?;
    let stop = CancellationToken::new();
    let loading = simulation
        .load
        .tasks
        .spawn(simulation.load.clone().run(stop.clone()));
    let mut cycles = 0;
    let least = options.min_cycles.max(1);
    let in_time =
        |cycles| cycles < least || options.budget.is_none_or(|budget| watch.elapsed() < budget);
    while cycles < options.cycles && in_time(cycles) {
        simulation.cycle().await?;
        cycles += 1;
    }
    stop.cancel();
    loading.await?;
    let last = clock.uptime();
    while simulation.ledger.open() > 0 && clock.uptime().saturating_sub(last) < WAIT_TIMEOUT {
        clock.sleep(Duration::from_secs(1)).await;
    }
    Ok(SimulatedOutcome {
        cell: options.cell,
        asked: options.cycles,
        cycles,
        budgeted: options.budget.is_some(),
        tally: simulation.ledger.close(),
        unproved: simulation.counts.unproved.load(Ordering::SeqCst),
        cut_off: simulation.counts.cut_off.load(Ordering::SeqCst),
        played_seconds: clock.uptime().as_secs(),
        took_ms: watch.elapsed().as_millis() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Protocol;

    fn outcome(cycles: u64, budgeted: bool, through: u64) -> SimulatedOutcome {
        SimulatedOutcome {
            cell: Cell {
                lag: 0,
                rate: 1,
                protocol: Protocol::Tcp,
            },
            asked: 3,
            cycles,
            budgeted,
            tally: RequestTally {
                sent: 9,
                answered: 9,
                through,
                ..RequestTally::default()
            },
            unproved: 0,
            cut_off: 0,
            played_seconds: 1,
            took_ms: 1,
        }
    }

    #[test]
    fn what_was_not_tried_as_often_as_asked_does_not_hold_unless_time_was_short() {
        assert!(outcome(3, false, 3).holds());
        assert!(!outcome(2, false, 3).holds());
        assert!(outcome(2, true, 3).holds());
        assert!(!outcome(0, true, 3).holds());
    }

    #[test]
    fn what_went_through_no_resolver_does_not_hold() {
        assert!(!outcome(3, false, 0).holds());
        assert!(!outcome(3, false, 2).holds());
        assert!(!outcome(1, true, 0).holds());
    }
}
