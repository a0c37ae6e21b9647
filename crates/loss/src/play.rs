//! One cell, from its first cycle to its last.

use std::{sync::atomic::Ordering, time::Duration};

use anyhow::{Context, Result};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::{
    cell::Cell,
    ledger::Tally,
    stage::{STUCK, Stage},
    stopwatch::Stopwatch,
};

/// What is played.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Under which conditions.
    pub cell: Cell,
    /// So many cycles at most.
    pub cycles: u64,
    /// So long at most, in real time; one cycle is played in any case.
    pub budget: Option<Duration>,
    /// Where chances come from.
    pub seed: u64,
    /// What is out of the ordinary.
    pub twist: Twist,
}

/// Something out of the ordinary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Twist {
    /// Nothing.
    #[default]
    None,
    /// Pods take no connection any more as soon as they are told to end. That loses requests, whoever
    /// looks after the service.
    PodsLeaveAtOnce,
    /// Somebody writes replicas without asking the operator. So does that.
    ScaledByHand,
    /// A resolver is told to end while it holds requests.
    ResolverEnds,
    /// The same, and pods take longer than it waits for them.
    ResolverEndsFirst,
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Under which conditions.
    pub cell: Cell,
    /// So many cycles were asked for.
    pub asked: u64,
    /// So many were played.
    pub cycles: u64,
    /// There was only so much time, so that fewer may have been played.
    pub budgeted: bool,
    /// What became of the requests.
    pub tally: Tally,
    /// Pods were told to end so many times while a node with a resolver led to none.
    pub unproved: u64,
    /// So many connections a resolver cut off at its end.
    pub cut_off: u64,
    /// So many seconds passed for those who played.
    pub played_seconds: u64,
    /// So many milliseconds it really took.
    pub took_ms: u64,
}

impl Outcome {
    /// Whether nothing went wrong, and it was really tried: as often as was asked for, and with a
    /// request through a resolver each time, as nothing else wakes a service here.
    pub fn holds(&self) -> bool {
        let tried = self.is_whole() || self.budgeted && self.cycles > 0;
        let through = self.tally.through >= self.cycles.max(1);
        tried && through && self.tally.holds() && self.unproved == 0 && self.cut_off == 0
    }

    /// Whether as many cycles were played as were asked for.
    pub fn is_whole(&self) -> bool {
        self.cycles >= self.asked
    }
}

/// Plays a cell, in a runtime of its own whose time is not that of the world.
pub fn play(asked: Asked) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    let outcome = runtime.block_on(run(asked));
    outcome.with_context(|| format!("cell {}", asked.cell))
}

async fn run(asked: Asked) -> Result<Outcome> {
    let watch = Stopwatch::start();
    let stage = Stage::open(asked).await?;
    let clock = stage.ground.clock;
    stage.settles().await?;
    let stop = CancellationToken::new();
    let loading = stage.load.tasks.spawn(stage.load.clone().run(stop.clone()));
    let mut cycles = 0;
    let in_time =
        |cycles| cycles == 0 || asked.budget.is_none_or(|budget| watch.elapsed() < budget);
    while cycles < asked.cycles && in_time(cycles) {
        stage.cycle().await?;
        cycles += 1;
    }
    stop.cancel();
    loading.await?;
    let last = clock.uptime();
    while stage.ledger.open() > 0 && clock.uptime().saturating_sub(last) < STUCK {
        clock.sleep(Duration::from_secs(1)).await;
    }
    Ok(Outcome {
        cell: asked.cell,
        asked: asked.cycles,
        cycles,
        budgeted: asked.budget.is_some(),
        tally: stage.ledger.close(),
        unproved: stage.count.unproved.load(Ordering::SeqCst),
        cut_off: stage.count.cut_off.load(Ordering::SeqCst),
        played_seconds: clock.uptime().as_secs(),
        took_ms: watch.elapsed().as_millis() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Protocol;

    fn outcome(cycles: u64, budgeted: bool, through: u64) -> Outcome {
        Outcome {
            cell: Cell {
                lag: 0,
                rate: 1,
                protocol: Protocol::Tcp,
            },
            asked: 3,
            cycles,
            budgeted,
            tally: Tally {
                sent: 9,
                answered: 9,
                through,
                ..Tally::default()
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
