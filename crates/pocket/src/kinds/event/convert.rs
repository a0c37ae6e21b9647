//! One event, two shapes: the core group's and that of events.k8s.io.
//!
//! The shapes differ in names only, so each conversion undoes the other.

use serde_json::{Map, Value};

/// Fields that change their name: in the core group, in events.k8s.io.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// A core Event as events.k8s.io shows it.
#[must_use]
pub fn to_events(core: Value) -> Value {
    rename(core, "events.k8s.io/v1", |field| {
        RENAMED
            .iter()
            .find(|(core, _)| *core == field)
            .map(|(_, new)| *new)
    })
}

/// An Event of events.k8s.io as it is stored.
#[must_use]
pub fn to_core(event: Value) -> Value {
    rename(event, "v1", |field| {
        RENAMED
            .iter()
            .find(|(_, new)| *new == field)
            .map(|(core, _)| *core)
    })
}

fn rename(event: Value, version: &str, other: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(fields) = event else {
        return event;
    };
    let mut renamed: Map<String, Value> = fields
        .into_iter()
        .map(|(field, value)| match other(&field) {
            Some(name) => (name.to_owned(), value),
            None => (field, value),
        })
        .collect();
    renamed.insert("apiVersion".to_owned(), version.into());
    Value::Object(renamed)
}
