//! Who plays which cell next, and how long it may take.

use std::{collections::VecDeque, time::Duration};

use neap_loss::{Cell, Stopwatch};
use parking_lot::Mutex;

#[derive(Debug)]
pub(crate) struct Share {
    left: Mutex<VecDeque<Cell>>,
    jobs: usize,
    budget: Option<Duration>,
    watch: Stopwatch,
}

impl Share {
    pub(crate) fn new(
        cells: &[Cell],
        jobs: usize,
        budget: Option<Duration>,
        watch: Stopwatch,
    ) -> Self {
        Self {
            left: Mutex::new(cells.iter().copied().collect()),
            jobs,
            budget,
            watch,
        }
    }

    /// The next cell, and its share of what is left of the time.
    pub(crate) fn next(&self) -> Option<(Cell, Option<Duration>)> {
        let mut left = self.left.lock();
        let budget = self.budget.map(|budget| {
            let time = budget.saturating_sub(self.watch.elapsed());
            let shares = left.len().div_ceil(self.jobs).max(1);
            time / shares as u32
        });
        left.pop_front().map(|cell| (cell, budget))
    }
}
