//! Conversion of events between the core group and events.k8s.io.
//!
//! The two differ in names, and in which empty fields they show; defaults fill those again, so each
//! conversion is the inverse of the other.

use serde_json::{Map, Value};

const CORE: &str = "v1";
const EVENTS: &str = "events.k8s.io/v1";

/// Renamed fields: in the core group, in events.k8s.io.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Converts a core Event to events.k8s.io.
#[must_use]
pub fn to_events(core: Value) -> Value {
    let mut event = rename(core, EVENTS, in_events);
    // Drops the empty fields that the core API always shows.
    if let Some(fields) = event.as_object_mut() {
        for field in ["reportingController", "reportingInstance"] {
            if fields.get(field).is_some_and(|value| value == "") {
                fields.remove(field);
            }
        }
    }
    event
}

/// Converts an events.k8s.io Event to its stored form.
#[must_use]
pub fn to_core(event: Value) -> Value {
    rename(event, CORE, in_core)
}

fn in_events(field: &str) -> Option<&'static str> {
    let mut all = RENAMED.iter();
    all.find(|(core, _)| *core == field).map(|(_, new)| *new)
}

fn in_core(field: &str) -> Option<&'static str> {
    let mut all = RENAMED.iter();
    all.find(|(_, new)| *new == field).map(|(core, _)| *core)
}

/// Renames the fields in `metadata.managedFields` to `version`, or each entry to its own version:
/// an entry is stored with the names of the version that wrote it, and compared in one form.
pub fn name_owned(event: &mut Value, version: Option<&str>) {
    let entries = event
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        let version = version.or(entry["apiVersion"].as_str()).unwrap_or(CORE);
        let other = if version == CORE { in_core } else { in_events };
        let Some(fields) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut) else {
            continue;
        };
        *fields = std::mem::take(fields)
            .into_iter()
            .map(|(name, owned)| {
                let known = name.strip_prefix("f:").and_then(other);
                (known.map_or(name, |known| format!("f:{known}")), owned)
            })
            .collect();
    }
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
