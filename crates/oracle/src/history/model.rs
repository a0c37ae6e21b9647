//! One object as it should be: there at a revision, or not there.

use super::{Action, Operation, Outcome};

/// The state of the object. Revisions only grow, so an absent object remembers its last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Model {
    /// Not there; whatever comes is newer than this.
    Absent(u64),
    /// There, at this revision.
    Present(u64),
    /// There, at a revision newer than this that nobody was told: a lost answer's write.
    Untold(u64),
}

use Model::{Absent, Present, Untold};

impl Model {
    /// The state after an operation, or nothing if it cannot happen now.
    ///
    /// `told` says whether a revision is the result of a write whose answer arrived, and so cannot
    /// be that of a lost one.
    pub(super) fn step(self, operation: &Operation, told: impl Fn(u64) -> bool) -> Option<Self> {
        match operation.outcome {
            Outcome::Found(revision) => self.seen(revision, told),
            Outcome::Created(revision) => match self {
                Absent(last) if revision > last => Some(Present(revision)),
                _ => None,
            },
            Outcome::Written(revision) => self.written(operation.action, revision, told),
            Outcome::Gone => self
                .expected(operation.action, told)
                .map(|now| Absent(now.newest())),
            Outcome::NotFound => matches!(self, Absent(_)).then_some(self),
            Outcome::Exists => (!matches!(self, Absent(_))).then_some(self),
            Outcome::Conflict => self.conflict(operation.action),
            Outcome::Unknown => self.lost(operation.action, told),
        }
    }

    fn newest(self) -> u64 {
        match self {
            Absent(last) | Present(last) | Untold(last) => last,
        }
    }

    /// The object is seen at a revision.
    fn seen(self, revision: u64, told: impl Fn(u64) -> bool) -> Option<Self> {
        match self {
            Present(now) if now == revision => Some(self),
            Untold(last) if revision > last && !told(revision) => Some(Present(revision)),
            _ => None,
        }
    }

    /// The object is there, at the revision that the action expects, if it expects one.
    fn expected(self, action: Action, told: impl Fn(u64) -> bool) -> Option<Self> {
        match (action.expected(), self) {
            (_, Absent(_)) => None,
            (None, there) => Some(there),
            (Some(expected), there) => there.seen(expected, told),
        }
    }

    fn written(self, action: Action, revision: u64, told: impl Fn(u64) -> bool) -> Option<Self> {
        match self.expected(action, &told)? {
            // Nothing needed to change.
            Present(now) if now == revision => Some(Present(revision)),
            Untold(last) if revision > last && !told(revision) => Some(Present(revision)),
            there if revision > there.newest() => Some(Present(revision)),
            _ => None,
        }
    }

    fn conflict(self, action: Action) -> Option<Self> {
        match (action, self) {
            (_, Absent(_)) => None,
            (Action::Write { picky: true, .. } | Action::Delete { picky: true, .. }, there) => {
                Some(there)
            }
            (action, Present(now)) if action.expected() == Some(now) => None,
            (_, there) => Some(there),
        }
    }

    /// The effect of an operation whose answer was lost, had it happened.
    fn lost(self, action: Action, told: impl Fn(u64) -> bool) -> Option<Self> {
        match (action, self) {
            (Action::Get, _) => None,
            (Action::Create, Absent(last)) => Some(Untold(last)),
            (Action::Create, _) => None,
            // An apply makes what is not there.
            (Action::Write { expected: None, .. }, Absent(last)) => Some(Untold(last)),
            (Action::Write { .. }, there) => Some(Untold(there.expected(action, told)?.newest())),
            (Action::Delete { .. }, there) => Some(Absent(there.expected(action, told)?.newest())),
        }
    }
}

impl Action {
    fn expected(self) -> Option<u64> {
        match self {
            Self::Write { expected, .. } | Self::Delete { expected, .. } => expected,
            Self::Get | Self::Create => None,
        }
    }
}
