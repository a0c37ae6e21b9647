//! Parts of an applied custom object that are never shown.
//!
//! kube-apiserver stores an applied custom object as it was merged; when it reads the object, it
//! drops the fields that its type does not have, and empty fields of its metadata. This has two
//! visible effects: each apply of something that is dropped increments the generation, and the next
//! write is stored, even if it changes nothing that is shown.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

use super::{Served, update::ObjectPart};

/// The metadata that the server sets itself, whatever was applied.
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

/// The parts of an applied object that were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HiddenParts {
    /// Distinguishes one such object from another; zero if nothing was dropped.
    pub(crate) mark: u64,
    /// Whether the generation counts any of it.
    pub(crate) counts: bool,
}

impl HiddenParts {
    /// The parts of `applied` that `shown` lacks.
    pub(super) fn between(
        served: &Served,
        part: ObjectPart,
        applied: &Value,
        shown: &Value,
    ) -> Self {
        if !served.is_custom() {
            return Self::default();
        }
        let wanted = |name: &str| match part {
            ObjectPart::Status => name == "status",
            _ => name != "metadata" && (name != "status" || !served.has_status()),
        };
        let lasting = |name: &str| part == ObjectPart::Main && !OWN.contains(&name);
        let metadata = &applied["metadata"];
        let dropped = !same(applied, shown, wanted);
        let blank = !same(metadata, &shown["metadata"], lasting);
        let mut hasher = DefaultHasher::new();
        for (name, value) in fields(applied, wanted).chain(fields(metadata, lasting)) {
            (name, value).hash(&mut hasher);
        }
        // An object that is converted to another version to be stored has lost it by then.
        let held = (dropped || blank) && served.is_storage();
        Self {
            mark: if held { hasher.finish().max(1) } else { 0 },
            counts: dropped && part == ObjectPart::Main,
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
