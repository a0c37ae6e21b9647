//! Distributes the cells and the time budget.

use std::{collections::VecDeque, time::Duration};

use neap_traffic::{Cell, Stopwatch};
use parking_lot::Mutex;

#[derive(Debug)]
pub(crate) struct BudgetScheduler {
    left: Mutex<VecDeque<Cell>>,
    jobs: usize,
    budget: Option<Duration>,
    watch: Stopwatch,
}

impl BudgetScheduler {
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

    /// The next cell, and its share of the remaining time.
    pub(crate) fn next(&self) -> Option<(Cell, Option<Duration>)> {
        let mut left = self.left.lock();
        let all = left.iter().map(|cell| weight(*cell)).sum();
        let cell = left.pop_front()?;
        let budget = self.budget.map(|budget| {
            let time = budget.saturating_sub(self.watch.elapsed());
            part(time, self.jobs as u32, weight(cell), all)
        });
        Some((cell, budget))
    }
}

/// The relative time of a cell. With many requests a cycle takes longer, and too few cycles would
/// be run in the same time.
fn weight(cell: Cell) -> u32 {
    match cell.rate {
        ..10 => 1,
        10..100 => 2,
        100.. => 4,
    }
}

/// The share of the remaining time for one of the remaining cells, if `jobs` are run at once.
fn part(time: Duration, jobs: u32, weight: u32, all: u32) -> Duration {
    (time * jobs * weight / all.max(1)).min(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_given_by_weight_and_used_up_but_not_exceeded() {
        let minute = Duration::from_mins(1);
        assert_eq!(part(minute, 1, 1, 4), minute / 4);
        assert_eq!(part(minute, 2, 1, 4), minute / 2);
        assert_eq!(part(minute, 1, 2, 4), minute / 2);
        assert_eq!(part(minute, 2, 4, 8), minute);
        assert_eq!(part(minute, 2, 4, 4), minute);
    }

    #[test]
    fn every_cell_has_a_share_and_busier_ones_a_larger_one() {
        let cells = Cell::all();
        let scheduler = BudgetScheduler::new(&cells, 2, None, Stopwatch::start());
        let dealt: Vec<_> = std::iter::from_fn(|| scheduler.next()).collect();
        assert_eq!(dealt.len(), cells.len());
        assert!(dealt.iter().all(|(_, budget)| budget.is_none()));
        let weights: Vec<_> = cells.into_iter().map(weight).collect();
        assert!(weights.is_sorted(), "{weights:?}");
    }
}
