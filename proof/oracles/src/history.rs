//! Records requests for single objects and their answers, and checks that they are linearizable.
//!
//! Every operation takes effect at one moment between its call and its answer: if no such moments
//! can be found, two clients got answers that cannot both be true. Objects are independent, so each
//! is judged alone.

mod check;
mod model;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
};

use crate::CommitLog;

/// The request of an operation. A write or delete may name the revision that it expects, and may
/// have other preconditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Get,
    Create,
    /// Changes the object; an apply may also create it.
    Write {
        /// The revision that the object must have.
        expected: Option<u64>,
        /// Whether a conflict may have another reason than the revision.
        other_preconditions: bool,
    },
    Delete {
        /// The revision that the object must have.
        expected: Option<u64>,
        /// Whether a conflict may have another reason than the revision.
        other_preconditions: bool,
    },
}

/// The answer to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The object exists, as this revision wrote it.
    Found(u64),
    /// It was created at this revision.
    Created(u64),
    /// It was changed at this revision, or has this revision and needed no change.
    Written(u64),
    /// It was removed.
    Gone,
    /// It does not exist.
    NotFound,
    /// It exists already.
    Exists,
    /// It does not have the expected revision.
    Conflict,
    /// The answer was lost, or the server itself does not know.
    Unknown,
}

/// An operation on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    pub action: Action,
    pub outcome: Outcome,
    /// Hashes of the version and the content of the object in the answer.
    pub content: Option<(u64, u64)>,
    /// The time of the request, on a logical clock.
    pub called: u64,
    /// The time of the answer; the maximum if it never came.
    pub answered: u64,
}

/// An object: `group/plural`, and `namespace/name` or `name`.
pub type Key = (String, String);

/// A history that cannot have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryViolation {
    pub key: Key,
    pub what: &'static str,
    /// The last operations that could be ordered.
    pub before: Vec<Operation>,
    /// Operations none of which can come next.
    pub stuck: Vec<Operation>,
}

/// All operations, by object.
#[derive(Debug, Clone, Default)]
pub struct OperationLog {
    operations: BTreeMap<Key, Vec<Operation>>,
    redefined: HashSet<String>,
}

/// The result of the check.
#[derive(Debug, Default)]
pub struct HistoryResult {
    /// Objects that were judged.
    pub keys: usize,
    /// Objects that were not judged, because clients outside the log wrote to them.
    pub foreign: usize,
    pub violations: Vec<HistoryViolation>,
}

impl OperationLog {
    /// Adds an operation, in any order.
    pub fn push(&mut self, key: Key, operation: Operation) {
        self.operations.entry(key).or_default().push(operation);
    }

    /// Records that the definition of a resource was changed: from now on one revision of its
    /// objects may appear with the defaults of either definition.
    pub fn redefined(&mut self, resource: String) {
        self.redefined.insert(resource);
    }

    pub fn len(&self) -> usize {
        self.operations.values().map(Vec::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Judges every object. With a commit log, answers are compared with the commits, and objects
    /// that clients outside this log wrote to are skipped.
    pub fn check(&self, commit_log: Option<&CommitLog>) -> HistoryResult {
        let mut result = HistoryResult::default();
        let commits = commit_log.map(by_key).unwrap_or_default();
        for (key, operations) in &self.operations {
            let stored = commit_log.map_or(key.0.as_str(), |c| c.stored(&key.0));
            let committed = commits.get(&(stored, key.1.as_str()));
            let committed = committed.map_or(&[][..], Vec::as_slice);
            if !self.redefined.contains(&key.0) {
                result.violations.extend(contents(key, operations));
            }
            if let Some(commit_log) = commit_log {
                let problem = uncommitted(key, operations, committed, commit_log.beginning());
                result.violations.extend(problem);
                if is_foreign(operations, committed) || commit_log.beginning() > 0 {
                    result.foreign += 1;
                    continue;
                }
            }
            result.keys += 1;
            if let Err((before, stuck)) = check::linearize(operations) {
                result.violations.push(HistoryViolation {
                    key: key.clone(),
                    what: "no order of these operations explains their answers",
                    before,
                    stuck,
                });
            }
        }
        result
    }
}

/// Revision, hash of its content, and whether it removed the object.
type Committed = (u64, u64, bool);

fn by_key(commit_log: &CommitLog) -> HashMap<(&str, &str), Vec<Committed>> {
    let mut keys: HashMap<_, Vec<Committed>> = HashMap::new();
    for commit in commit_log.commits() {
        let key = (commit.resource.as_str(), commit.path.as_str());
        let entry = (commit.revision, commit.state.fingerprint, commit.gone);
        keys.entry(key).or_default().push(entry);
    }
    keys
}

/// One revision must always have the same content.
fn contents(key: &Key, operations: &[Operation]) -> Option<HistoryViolation> {
    let mut known: HashMap<(u64, u64), &Operation> = HashMap::new();
    for operation in operations {
        let (Some(revision), Some((version, _))) = (operation.revision(), operation.content) else {
            continue;
        };
        let first = *known.entry((revision, version)).or_insert(operation);
        if first.content != operation.content {
            return Some(HistoryViolation {
                key: key.clone(),
                what: "one revision says two things",
                before: vec![*first],
                stuck: vec![*operation],
            });
        }
    }
    None
}

/// Every revision in an answer must have been committed to that object.
fn uncommitted(
    key: &Key,
    operations: &[Operation],
    committed: &[Committed],
    beginning: u64,
) -> Option<HistoryViolation> {
    let wrong = operations.iter().find(|operation| {
        let Some(revision) = operation.revision().filter(|r| *r > beginning) else {
            return false;
        };
        let found = committed.binary_search_by_key(&revision, |(at, ..)| *at);
        found.is_err()
    })?;
    Some(HistoryViolation {
        key: key.clone(),
        what: "answered with a revision that was never committed to the object",
        before: Vec::new(),
        stuck: vec![*wrong],
    })
}

/// Whether there are commits that no recorded operation can have made.
fn is_foreign(operations: &[Operation], committed: &[Committed]) -> bool {
    let lost = |operation: &&Operation| operation.outcome == Outcome::Unknown;
    let ours: HashSet<u64> = operations
        .iter()
        .filter(|operation| matches!(operation.outcome, Outcome::Created(_) | Outcome::Written(_)))
        .filter_map(Operation::revision)
        .collect();
    let puts = committed
        .iter()
        .filter(|(revision, _, gone)| !gone && !ours.contains(revision))
        .count();
    let removals = committed.iter().filter(|(.., gone)| *gone).count();
    let removed = operations
        .iter()
        .filter(|operation| operation.outcome == Outcome::Gone)
        .count();
    let unknown = operations.iter().filter(lost).count();
    puts + removals.saturating_sub(removed) > unknown
}

impl Operation {
    fn revision(&self) -> Option<u64> {
        match self.outcome {
            Outcome::Found(revision) | Outcome::Created(revision) | Outcome::Written(revision) => {
                Some(revision)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, ", self.called)?;
        match self.answered {
            u64::MAX => f.write_str("…)")?,
            at => write!(f, "{at}]")?,
        }
        write!(f, " {:?} -> {:?}", self.action, self.outcome)
    }
}

impl fmt::Display for HistoryViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (resource, path) = &self.key;
        write!(f, "not linearizable: {} of {resource}: {}", path, self.what)?;
        for operation in &self.before {
            write!(f, "\n    then     {operation}")?;
        }
        for operation in &self.stuck {
            write!(f, "\n    but also {operation}")?;
        }
        Ok(())
    }
}
