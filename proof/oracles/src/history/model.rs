//! The model of an object: it exists at a revision, or does not exist.

use super::{Action, Operation, Outcome};

/// The state of the object. Revisions only grow, so an absent object has its last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Model {
    /// It does not exist; any later revision is higher than this.
    Absent(u64),
    /// It exists at this revision.
    Present(u64),
    /// It exists at an unknown revision higher than this, written by an operation whose answer was
    /// lost.
    UnknownRevision(u64),
    /// Either of `Absent` and `UnknownRevision`: a lost write or delete may remove an object, or leave it
    /// because of a finalizer.
    Either(u64),
}

use Model::{Absent, Either, Present, UnknownRevision};

impl Model {
    /// The state after an operation; none if the operation is impossible now.
    pub(super) fn step(self, operation: &Operation) -> Option<Self> {
        if let Either(last) = self {
            let (absent, unknown_start) = (
                Absent(last).step(operation),
                UnknownRevision(last).step(operation),
            );
            return union(absent, unknown_start);
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
            Absent(last) | Present(last) | UnknownRevision(last) | Either(last) => last,
        }
    }

    /// The object is read at a revision.
    fn seen(self, revision: u64) -> Option<Self> {
        match self {
            Present(now) if now == revision => Some(self),
            UnknownRevision(last) if revision > last => Some(Present(revision)),
            _ => None,
        }
    }

    /// The object exists, at the revision that the action expects, if it expects one.
    fn expected(self, action: Action) -> Option<Self> {
        match (action.expected(), self) {
            (_, Absent(_)) => None,
            (None, there) => Some(there),
            (Some(expected), there) => there.seen(expected),
        }
    }

    /// An answer with the current revision means that nothing needed to change.
    fn written(self, revision: u64) -> Option<Self> {
        let same = self == Present(revision);
        (same || revision > self.newest()).then_some(Present(revision))
    }

    fn conflict(self, action: Action) -> Option<Self> {
        match (action, self) {
            // An apply that names a uid refuses to create the object.
            (
                Action::Write {
                    other_preconditions: true,
                    ..
                },
                Absent(_),
            ) => Some(self),
            (_, Absent(_)) => None,
            (
                Action::Write {
                    other_preconditions: true,
                    ..
                }
                | Action::Delete {
                    other_preconditions: true,
                    ..
                },
                there,
            ) => Some(there),
            (action, Present(now)) if action.expected() == Some(now) => None,
            (_, there) => Some(there),
        }
    }

    /// The effect of an operation whose answer was lost, had it happened.
    fn lost(self, action: Action) -> Option<Self> {
        match (action, self) {
            // An apply creates a missing object.
            (Action::Create | Action::Write { expected: None, .. }, Absent(last)) => {
                Some(UnknownRevision(last))
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
