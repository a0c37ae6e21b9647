//! What is applied to a custom object and shown to nobody.
//!
//! The reference stores an applied custom object as it was merged, and drops what its type has no
//! room for, and what is blank in its metadata, when it reads it. Two things tell: each apply of
//! something that is dropped counts as a change of the wanted state, and whatever is written next
//! is stored, even if it changes nothing that is shown.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

use super::{Served, update::Part};

/// The metadata that the server writes itself, whatever was applied.
const OWN: [&str; 8] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "selfLink",
    "managedFields",
];

/// What was dropped of an applied object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Unseen {
    /// Tells one such object from another; zero if nothing was dropped.
    pub(crate) mark: u64,
    /// Whether any of it was wanted state.
    pub(crate) counts: bool,
}

impl Unseen {
    /// What `shown` lacks of `applied`.
    pub(super) fn between(served: &Served, part: Part, applied: &Value, shown: &Value) -> Self {
        if !served.is_custom() {
            return Self::default();
        }
        let wanted = |name: &str| match part {
            Part::Status => name == "status",
            _ => name != "metadata" && (name != "status" || !served.has_status()),
        };
        let lasting = |name: &str| part == Part::Main && !OWN.contains(&name);
        let metadata = &applied["metadata"];
        let dropped = !same(applied, shown, wanted);
        let blank = !same(metadata, &shown["metadata"], lasting);
        let mut hasher = DefaultHasher::new();
        for (name, value) in fields(applied, wanted).chain(fields(metadata, lasting)) {
            (name, value).hash(&mut hasher);
        }
        // What is converted to another version to be stored has lost it by then.
        let held = (dropped || blank) && served.is_storage();
        Self {
            mark: if held { hasher.finish().max(1) } else { 0 },
            counts: dropped && part == Part::Main,
        }
    }
}

fn same(a: &Value, b: &Value, kept: impl Fn(&str) -> bool + Copy) -> bool {
    fields(a, kept).count() == fields(b, kept).count()
        && fields(a, kept).all(|(name, value)| b.get(name) == Some(value))
}

fn fields(value: &Value, kept: impl Fn(&str) -> bool) -> impl Iterator<Item = (&String, &Value)> {
    let fields = value.as_object().into_iter().flat_map(Map::iter);
    fields.filter(move |(name, _)| kept(name))
}
