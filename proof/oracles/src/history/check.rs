//! The search for an order: the algorithm of Wing and Gong, with Lowe's memoization.
//!
//! Calls and answers are in one list by time. An operation may come next if its call comes before
//! the first remaining answer; taking it removes both from the list. At an answer nothing more can
//! come first, so the last choice is undone. A set of taken operations together with the resulting
//! state is never tried twice.

use std::collections::HashSet;

use super::{Operation, Outcome, model::Model};

/// Operations of a failed search that are shown.
const MAX_SHOWN_OPERATIONS: usize = 6;
const NONE: usize = usize::MAX;

/// A call or an answer, linked to its neighbours in time.
struct TimelineEntry {
    operation: usize,
    /// The index of the answer, if this is a call that was answered.
    answer: Option<usize>,
    is_call: bool,
    before: usize,
    after: usize,
}

/// The list; entry 0 is its head.
struct Timeline(Vec<TimelineEntry>);

impl Timeline {
    fn new(operations: &[Operation]) -> Self {
        let mut moments: Vec<(u64, bool, usize)> = Vec::with_capacity(operations.len() * 2);
        for (i, operation) in operations.iter().enumerate() {
            moments.push((operation.called, false, i));
            if operation.outcome != Outcome::Unknown {
                moments.push((operation.answered, true, i));
            }
        }
        moments.sort_unstable();
        let mut entries = vec![TimelineEntry::new(NONE, false)];
        let mut calls = vec![NONE; operations.len()];
        for (_, is_answer, operation) in moments {
            let at = entries.len();
            entries.push(TimelineEntry::new(operation, !is_answer));
            entries[at].before = at - 1;
            entries[at - 1].after = at;
            if is_answer {
                entries[calls[operation]].answer = Some(at);
            } else {
                calls[operation] = at;
            }
        }
        Self(entries)
    }

    fn first(&self) -> usize {
        self.0[0].after
    }

    fn unlink(&mut self, at: usize) {
        let (before, after) = (self.0[at].before, self.0[at].after);
        self.0[before].after = after;
        if after != NONE {
            self.0[after].before = before;
        }
    }

    fn relink(&mut self, at: usize) {
        let (before, after) = (self.0[at].before, self.0[at].after);
        self.0[before].after = at;
        if after != NONE {
            self.0[after].before = at;
        }
    }

    fn take(&mut self, call: usize) {
        self.unlink(call);
        if let Some(answer) = self.0[call].answer {
            self.unlink(answer);
        }
    }

    fn restore(&mut self, call: usize) {
        if let Some(answer) = self.0[call].answer {
            self.relink(answer);
        }
        self.relink(call);
    }
}

impl TimelineEntry {
    fn new(operation: usize, is_call: bool) -> Self {
        Self {
            operation,
            answer: None,
            is_call,
            before: NONE,
            after: NONE,
        }
    }
}

/// The last operations that could be ordered, and those that could not come next.
pub(super) type FailedSearch = (Vec<Operation>, Vec<Operation>);

/// Finds an order of `operations` that explains all answers.
pub(super) fn linearize(operations: &[Operation]) -> Result<(), FailedSearch> {
    Search::new(operations).run()
}

struct Search<'a> {
    operations: &'a [Operation],
    timeline: Timeline,
    tried: HashSet<(u128, Model)>,
    /// The order so far: calls, each with the state before it.
    taken: Vec<(usize, Model)>,
    state: Model,
    set: u128,
    /// The number of answered operations that are not ordered yet.
    left: usize,
    best: usize,
    deepest: FailedSearch,
}

impl<'a> Search<'a> {
    fn new(operations: &'a [Operation]) -> Self {
        Self {
            timeline: Timeline::new(operations),
            tried: HashSet::new(),
            taken: Vec::new(),
            state: Model::Absent(0),
            set: 0,
            left: operations.iter().filter(|o| is_known(o)).count(),
            best: 0,
            deepest: FailedSearch::default(),
            operations,
        }
    }

    fn run(mut self) -> Result<(), FailedSearch> {
        let mut at = self.timeline.first();
        while self.left > 0 {
            at = if at == NONE || !self.timeline.0[at].is_call {
                match self.undo() {
                    Some(call) => self.timeline.0[call].after,
                    None => return Err(self.deepest),
                }
            } else if self.take(at) {
                self.timeline.first()
            } else {
                self.timeline.0[at].after
            };
        }
        Ok(())
    }

    /// Orders a call next, if it is possible now and was not tried before.
    fn take(&mut self, call: usize) -> bool {
        let index = self.timeline.0[call].operation;
        let operation = &self.operations[index];
        let Some(next) = self.state.step(operation) else {
            return false;
        };
        let grown = self.set ^ mark(index);
        if !self.tried.insert((grown, next)) {
            return false;
        }
        self.taken.push((call, self.state));
        self.timeline.take(call);
        (self.state, self.set) = (next, grown);
        self.left -= usize::from(is_known(operation));
        true
    }

    /// Undoes the last choice, since nothing could follow it.
    fn undo(&mut self) -> Option<usize> {
        if self.taken.len() >= self.best {
            self.best = self.taken.len() + 1;
            self.deepest = self.stuck();
        }
        let (call, before) = self.taken.pop()?;
        let index = self.timeline.0[call].operation;
        self.timeline.restore(call);
        self.state = before;
        self.set ^= mark(index);
        self.left += usize::from(is_known(&self.operations[index]));
        Some(call)
    }

    fn stuck(&self) -> FailedSearch {
        let start = self.taken.len().saturating_sub(MAX_SHOWN_OPERATIONS);
        let of = |entry: usize| self.operations[self.timeline.0[entry].operation];
        let before = self.taken[start..].iter().map(|(call, _)| of(*call));
        let mut next = Vec::new();
        let mut at = self.timeline.first();
        while at != NONE && self.timeline.0[at].is_call && next.len() < MAX_SHOWN_OPERATIONS {
            next.push(of(at));
            at = self.timeline.0[at].after;
        }
        (before.collect(), next)
    }
}

fn is_known(operation: &Operation) -> bool {
    operation.outcome != Outcome::Unknown
}

/// A number for each operation, so that the XOR of a set identifies it.
fn mark(operation: usize) -> u128 {
    let mix = |seed: u64| {
        let mut mixed = (operation as u64 + 1).wrapping_mul(seed);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u128::from(mixed ^ (mixed >> 31))
    };
    (mix(0x9e37_79b9_7f4a_7c15) << 64) | mix(0xd1b5_4a32_d192_ed03)
}
