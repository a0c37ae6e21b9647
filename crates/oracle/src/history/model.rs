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
    /// One of `Absent` and `Untold`: a lost write or delete may remove an object, and may leave it
    /// there because of a finalizer.
    Either(u64),
}

use Model::{Absent, Either, Present, Untold};

impl Model {
    /// The state after an operation, or nothing if it cannot happen now.
    pub(super) fn step(self, operation: &Operation) -> Option<Self> {
        if let Either(last) = self {
            let (absent, untold) = (Absent(last).step(operation), Untold(last).step(operation));
            return union(absent, untold);
        }
        let action = operation.action;
        match operation.outcome {
            Outcome::Found(revision) => self.seen(revision),
            Outcome::Created(revision) => match self {
                Absent(last) if revision > last => Some(Present(revision)),
                _ => None,
            },
            Outcome::Written(revision) => self.expected(action)?.written(revision),
            Outcome::Gone => self.expected(action).map(|now| Absent(now.newest())),
            Outcome::NotFound => matches!(self, Absent(_)).then_some(self),
            Outcome::Exists => (!matches!(self, Absent(_))).then_some(self),
            Outcome::Conflict => self.conflict(action),
            Outcome::Unknown => self.lost(action),
        }
    }

    fn newest(self) -> u64 {
        match self {
            Absent(last) | Present(last) | Untold(last) | Either(last) => last,
        }
    }

    /// The object is seen at a revision.
    fn seen(self, revision: u64) -> Option<Self> {
        match self {
            Present(now) if now == revision => Some(self),
            Untold(last) if revision > last => Some(Present(revision)),
            _ => None,
        }
    }

    /// The object is there, at the revision that the action expects, if it expects one.
    fn expected(self, action: Action) -> Option<Self> {
        match (action.expected(), self) {
            (_, Absent(_)) => None,
            (None, there) => Some(there),
            (Some(expected), there) => there.seen(expected),
        }
    }

    /// An answer with the revision that was there says that nothing needed to change.
    fn written(self, revision: u64) -> Option<Self> {
        let same = self == Present(revision);
        (same || revision > self.newest()).then_some(Present(revision))
    }

    fn conflict(self, action: Action) -> Option<Self> {
        match (action, self) {
            // An apply that names a uid refuses to make what is not there.
            (Action::Write { picky: true, .. }, Absent(_)) => Some(self),
            (_, Absent(_)) => None,
            (Action::Write { picky: true, .. } | Action::Delete { picky: true, .. }, there) => {
                Some(there)
            }
            (action, Present(now)) if action.expected() == Some(now) => None,
            (_, there) => Some(there),
        }
    }

    /// The effect of an operation whose answer was lost, had it happened.
    fn lost(self, action: Action) -> Option<Self> {
        match (action, self) {
            // An apply makes what is not there.
            (Action::Create | Action::Write { expected: None, .. }, Absent(last)) => {
                Some(Untold(last))
            }
            (Action::Write { .. } | Action::Delete { .. }, there) => {
                Some(Either(there.expected(action)?.newest()))
            }
            (Action::Get | Action::Create, _) => None,
        }
    }
}

fn union(one: Option<Model>, other: Option<Model>) -> Option<Model> {
    match (one, other) {
        (None, only) | (only, None) => only,
        (Some(one), Some(other)) if one == other => Some(one),
        (Some(one), Some(other)) => Some(Either(one.newest().min(other.newest()))),
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
