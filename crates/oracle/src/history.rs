//! What clients asked of single objects and were told, and whether that is linearizable.
//!
//! Every operation took effect at one moment between its call and its answer: if no such moments
//! can be found, two clients were told things that cannot both be true. Objects are independent,
//! so each is judged alone.

mod check;
mod model;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
};

use crate::Chronicle;

/// What was asked. A write or delete may name the revision that it expects, and may have other
/// preconditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Read it.
    Get,
    /// Make it.
    Create,
    /// Change it; an apply may also make it.
    Write {
        /// The revision that must be there.
        expected: Option<u64>,
        /// Whether a conflict may have another reason than the revision.
        picky: bool,
    },
    /// Remove it.
    Delete {
        /// The revision that must be there.
        expected: Option<u64>,
        /// Whether a conflict may have another reason than the revision.
        picky: bool,
    },
}

/// What was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is there, as this revision wrote it.
    Found(u64),
    /// It was made at this revision.
    Created(u64),
    /// It was changed at this revision, or is at this revision and needed no change.
    Written(u64),
    /// It was removed.
    Gone,
    /// It is not there.
    NotFound,
    /// It is there already.
    Exists,
    /// It is not as expected.
    Conflict,
    /// Nobody knows: the answer was lost, or the server does not know itself.
    Unknown,
}

/// One operation on one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// What was asked.
    pub action: Action,
    /// What was answered.
    pub outcome: Outcome,
    /// What the object in the answer said, with a number for the version it was written in.
    pub content: Option<(u64, u64)>,
    /// When it was asked, on a clock that only orders.
    pub called: u64,
    /// When it was answered; an answer that never came is infinitely late.
    pub answered: u64,
}

/// Which object: `group/plural`, and `namespace/name` or `name`.
pub type Key = (String, String);

/// A history that cannot have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Of this object.
    pub key: Key,
    /// What is wrong, in words.
    pub what: &'static str,
    /// The last operations that could be put in an order.
    pub before: Vec<Operation>,
    /// Operations of which none can come next.
    pub stuck: Vec<Operation>,
}

/// All operations, by object.
#[derive(Debug, Clone, Default)]
pub struct Record {
    operations: BTreeMap<Key, Vec<Operation>>,
    redefined: HashSet<String>,
}

/// What a record was found to be.
#[derive(Debug, Default)]
pub struct Judgement {
    /// Objects that were judged.
    pub keys: usize,
    /// Objects that somebody else wrote to, which were not.
    pub foreign: usize,
    /// What is wrong.
    pub violations: Vec<Violation>,
}

impl Record {
    /// Adds an operation, in any order.
    pub fn push(&mut self, key: Key, operation: Operation) {
        self.operations.entry(key).or_default().push(operation);
    }

    /// Takes in that the definition of a resource was changed: from now on one revision of its
    /// objects may be shown in two ways, with the defaults of then and of now.
    pub fn redefined(&mut self, resource: String) {
        self.redefined.insert(resource);
    }

    /// How many operations were recorded.
    pub fn len(&self) -> usize {
        self.operations.values().map(Vec::len).sum()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Judges every object. With a chronicle, objects that were also written by somebody who is
    /// not in the record are left out, and answers are held against what was committed.
    pub fn check(&self, chronicle: Option<&Chronicle>) -> Judgement {
        let mut judgement = Judgement::default();
        let commits = chronicle.map(by_key).unwrap_or_default();
        for (key, operations) in &self.operations {
            let stored = chronicle.map_or(key.0.as_str(), |c| c.stored(&key.0));
            let committed = commits.get(&(stored, key.1.as_str()));
            let committed = committed.map_or(&[][..], Vec::as_slice);
            if !self.redefined.contains(&key.0) {
                judgement.violations.extend(contents(key, operations));
            }
            if let Some(chronicle) = chronicle {
                let problem = uncommitted(key, operations, committed, chronicle.beginning());
                judgement.violations.extend(problem);
                if is_foreign(operations, committed) || chronicle.beginning() > 0 {
                    judgement.foreign += 1;
                    continue;
                }
            }
            judgement.keys += 1;
            if let Err((before, stuck)) = check::linearize(operations) {
                judgement.violations.push(Violation {
                    key: key.clone(),
                    what: "no order of these operations explains their answers",
                    before,
                    stuck,
                });
            }
        }
        judgement
    }
}

/// Revision, what it wrote, and whether it removed the object.
type Committed = (u64, u64, bool);

fn by_key(chronicle: &Chronicle) -> HashMap<(&str, &str), Vec<Committed>> {
    let mut keys: HashMap<_, Vec<Committed>> = HashMap::new();
    for commit in chronicle.commits() {
        let key = (commit.resource.as_str(), commit.path.as_str());
        let entry = (commit.revision, commit.state.fingerprint, commit.gone);
        keys.entry(key).or_default().push(entry);
    }
    keys
}

/// One revision must say one thing.
fn contents(key: &Key, operations: &[Operation]) -> Option<Violation> {
    let mut known: HashMap<(u64, u64), &Operation> = HashMap::new();
    for operation in operations {
        let (Some(revision), Some((version, _))) = (operation.revision(), operation.content) else {
            continue;
        };
        let first = *known.entry((revision, version)).or_insert(operation);
        if first.content != operation.content {
            return Some(Violation {
                key: key.clone(),
                what: "one revision says two things",
                before: vec![*first],
                stuck: vec![*operation],
            });
        }
    }
    None
}

/// Every revision that a client was told of must have been committed to that object.
fn uncommitted(
    key: &Key,
    operations: &[Operation],
    committed: &[Committed],
    beginning: u64,
) -> Option<Violation> {
    let wrong = operations.iter().find(|operation| {
        let Some(revision) = operation.revision().filter(|r| *r > beginning) else {
            return false;
        };
        let found = committed.binary_search_by_key(&revision, |(at, ..)| *at);
        found.is_err()
    })?;
    Some(Violation {
        key: key.clone(),
        what: "answered with a revision that was never committed to the object",
        before: Vec::new(),
        stuck: vec![*wrong],
    })
}

/// Whether commits are left over that no recorded operation can have made.
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

impl fmt::Display for Violation {
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
