//! What is to be written, and why.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
};

use kube::api::{ApiResource, DynamicObject};
use serde_json::{Value, json};

use super::{APPLIED, differences};
use crate::key::Key;

/// A kind of objects and where they live.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Kind {
    /// Its names.
    pub resource: ApiResource,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

/// An object as a decision wants it: everything it says is ours, and nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// Its kind.
    pub kind: Kind,
    /// The whole intent: `metadata` with name, labels and owner, `spec` and so on.
    pub object: Value,
}

impl Goal {
    /// Namespace and name.
    pub fn key(&self) -> Key {
        let text = |field: &str| self.object["metadata"][field].as_str().unwrap_or_default();
        Key::new(text("namespace"), text("name"))
    }
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// There is no such object.
    Create(Goal),
    /// The object is not as it should be.
    Update {
        /// As it should be.
        goal: Goal,
        /// The object that was looked at.
        uid: String,
        /// The fields that differ.
        because: Vec<String>,
    },
    /// The object is ours and no longer wanted.
    Delete {
        /// Its kind.
        kind: Kind,
        /// Which one.
        key: Key,
        /// The object that was looked at.
        uid: String,
    },
}

/// What is to be written, in this order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// The writes.
    pub changes: Vec<Change>,
}

/// What must be written so that `goals` are met, given the objects of ours that are `live`: those
/// with our owner and label, and those that have the name of a goal.
///
/// Creates and updates come in the order of the goals, deletes after them, so that what replaces
/// an object is there before that goes.
pub fn plan(goals: &[Goal], live: &[(Kind, DynamicObject)]) -> Plan {
    let mut left: BTreeMap<(String, Key), &(Kind, DynamicObject)> = live
        .iter()
        .map(|one| ((address(&one.0), Key::of(&one.1)), one))
        .collect();
    let mut changes = Vec::new();
    for goal in goals {
        let goal = marked(goal);
        match left.remove(&(address(&goal.kind), goal.key())) {
            None => changes.push(Change::Create(goal)),
            Some((_, object)) => changes.extend(update(goal, object)),
        }
    }
    let unwanted = left
        .into_values()
        .filter(|(_, object)| object.metadata.deletion_timestamp.is_none());
    changes.extend(unwanted.map(|(kind, object)| Change::Delete {
        kind: kind.clone(),
        key: Key::of(object),
        uid: object.metadata.uid.clone().unwrap_or_default(),
    }));
    Plan { changes }
}

fn update(goal: Goal, object: &DynamicObject) -> Option<Change> {
    // What is on its way out is made anew when it is gone.
    if object.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let live = serde_json::to_value(object).unwrap_or_default();
    let because = differences(&goal.object, &live);
    let uid = object.metadata.uid.clone().unwrap_or_default();
    (!because.is_empty()).then_some(Change::Update { goal, uid, because })
}

/// The goal with a mark of what it says. Fields that it no longer has are still in the object; by
/// the mark one sees that they have to go.
fn marked(goal: &Goal) -> Goal {
    let mut goal = goal.clone();
    let mut hasher = DefaultHasher::new();
    goal.object.to_string().hash(&mut hasher);
    let mark = format!("{:016x}", hasher.finish());
    if let Some(metadata) = goal.object["metadata"].as_object_mut() {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        annotations[APPLIED] = mark.into();
    }
    goal
}

fn address(kind: &Kind) -> String {
    let ApiResource { group, plural, .. } = &kind.resource;
    format!("{group}/{plural}")
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.changes.is_empty() {
            return f.write_str("nothing to do");
        }
        for (at, change) in self.changes.iter().enumerate() {
            let break_before = if at > 0 { "\n" } else { "" };
            write!(f, "{break_before}{change}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(goal) => write!(
                f,
                "create {} {}: it is missing",
                goal.kind.resource.kind,
                goal.key()
            ),
            Self::Update { goal, because, .. } => {
                let fields = because.join(", ");
                write!(
                    f,
                    "update {} {}: {fields}",
                    goal.kind.resource.kind,
                    goal.key()
                )
            }
            Self::Delete { kind, key, .. } => {
                write!(
                    f,
                    "delete {} {key}: it is no longer wanted",
                    kind.resource.kind
                )
            }
        }
    }
}
