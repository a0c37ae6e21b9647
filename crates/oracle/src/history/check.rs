//! The search for an order: Wing and Gong's, with Lowe's memory of what was tried.
//!
//! Calls and answers stand in one list by time. An operation may come next if its call stands
//! before the first remaining answer; taking it removes both from the list. At an answer nothing
//! more can come first, so the last choice is taken back. A set of taken operations together with
//! the state it led to is never tried twice.

use std::collections::HashSet;

use super::{Operation, Outcome, model::Model};

/// How many operations of a failed search are shown.
const SHOWN: usize = 6;
const NONE: usize = usize::MAX;

/// A call or an answer, linked to its neighbours in time.
struct Entry {
    operation: usize,
    /// Where the answer stands, if this is a call whose answer came.
    answer: Option<usize>,
    is_call: bool,
    before: usize,
    after: usize,
}

/// The list; entry 0 is its head.
struct Timeline(Vec<Entry>);

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
        let mut entries = vec![Entry::new(NONE, false)];
        let mut calls = vec![NONE; operations.len()];
        for (_, is_answer, operation) in moments {
            let at = entries.len();
            entries.push(Entry::new(operation, !is_answer));
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

    fn give_back(&mut self, call: usize) {
        if let Some(answer) = self.0[call].answer {
            self.relink(answer);
        }
        self.relink(call);
    }
}

impl Entry {
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

/// What could be ordered last, and what could not come next.
pub(super) type Stuck = (Vec<Operation>, Vec<Operation>);

/// Finds an order of `operations` that explains all answers.
pub(super) fn linearize(operations: &[Operation]) -> Result<(), Stuck> {
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
    /// How many answered operations are still to be ordered.
    left: usize,
    best: usize,
    deepest: Stuck,
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
            deepest: Stuck::default(),
            operations,
        }
    }

    fn run(mut self) -> Result<(), Stuck> {
        let mut at = self.timeline.first();
        while self.left > 0 {
            at = if at == NONE || !self.timeline.0[at].is_call {
                match self.take_back() {
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

    /// Orders a call next, if it may come now and this was not tried before.
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

    /// Takes back the last choice, since nothing could follow it.
    fn take_back(&mut self) -> Option<usize> {
        if self.taken.len() >= self.best {
            self.best = self.taken.len() + 1;
            self.deepest = self.stuck();
        }
        let (call, before) = self.taken.pop()?;
        let index = self.timeline.0[call].operation;
        self.timeline.give_back(call);
        self.state = before;
        self.set ^= mark(index);
        self.left += usize::from(is_known(&self.operations[index]));
        Some(call)
    }

    fn stuck(&self) -> Stuck {
        let start = self.taken.len().saturating_sub(SHOWN);
        let of = |entry: usize| self.operations[self.timeline.0[entry].operation];
        let before = self.taken[start..].iter().map(|(call, _)| of(*call));
        let mut next = Vec::new();
        let mut at = self.timeline.first();
        while at != NONE && self.timeline.0[at].is_call && next.len() < SHOWN {
            next.push(of(at));
            at = self.timeline.0[at].after;
        }
        (before.collect(), next)
    }
}

fn is_known(operation: &Operation) -> bool {
    operation.outcome != Outcome::Unknown
}

/// A number for each operation, so that sets of them are told apart by one number.
fn mark(operation: usize) -> u128 {
    let mix = |seed: u64| {
        let mut mixed = (operation as u64 + 1).wrapping_mul(seed);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u128::from(mixed ^ (mixed >> 31))
    };
    (mix(0x9e37_79b9_7f4a_7c15) << 64) | mix(0xd1b5_4a32_d192_ed03)
}
