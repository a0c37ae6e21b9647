//! Events, under both of their APIs.
//!
//! There is one store: it holds core Events, and [`convert`] converts them to events.k8s.io Events.
//! The older API requires little of an event, the newer one requires everything.

pub mod convert;

use std::time::Duration;

use serde_json::Value;

use super::{
    Rules, Traits,
    fields::{fill, filled, is_empty, is_set, number, text},
    names,
};
use crate::status::Problems;

const TRAITS: Traits = Traits {
    create_on_update: true,
    ttl: Some(Duration::from_hours(1)),
    status: false,
    ..Traits::USUAL
};

pub(super) const CORE_RULES: Rules = Rules {
    default: default_core,
    validate: validate_core,
    traits: TRAITS,
    ..Rules::SHAPE_ONLY
};

pub(super) const RULES: Rules = Rules {
    default: |event| {
        filled(event, "regarding");
        filled(event, "deprecatedSource");
        null_when_absent(
            event,
            &["deprecatedFirstTimestamp", "deprecatedLastTimestamp"],
        );
    },
    validate: |event, problems| {
        check_namespace(event, "regarding", problems);
        validate_new_style(event, problems);
    },
    validate_update,
    traits: TRAITS,
    ..Rules::SHAPE_ONLY
};

fn default_core(event: &mut Value) {
    filled(event, "involvedObject");
    filled(event, "source");
    fill(event, "reportingComponent", "");
    fill(event, "reportingInstance", "");
    null_when_absent(event, &["eventTime", "firstTimestamp", "lastTimestamp"]);
}

/// Sets absent times to `null`, as the API writes them.
fn null_when_absent(event: &mut Value, fields: &[&str]) {
    for field in fields {
        if event.get(field).is_none() {
            fill(event, field, Value::Null);
        }
    }
}

fn validate_core(event: &Value, problems: &mut Problems) {
    check_namespace(event, "involvedObject", problems);
    // A time with microseconds marks a client of the newer API.
    if !is_empty(event.get("eventTime")) {
        check_reporter(event, "reportingComponent", problems);
        check_texts(event, "message", problems);
    }
}

/// An event is in the namespace of its object; for cluster-scoped objects it is in `default`.
fn check_namespace(event: &Value, about: &str, problems: &mut Problems) {
    let namespace = text(&event["metadata"], "namespace");
    let object = text(&event[about], "namespace");
    let fits = match object {
        "" => matches!(namespace, "" | "default"),
        object => object == namespace,
    };
    if !fits {
        let path = format!("{about}.namespace");
        problems.invalid(path, object, "does not match event.namespace");
    }
}

fn check_reporter(event: &Value, controller: &str, problems: &mut Problems) {
    let name = text(event, controller);
    if name.is_empty() {
        problems.required(controller, "");
    }
    for complaint in names::qualified(name) {
        problems.invalid(controller, name, complaint);
    }
    if text(event, "reportingInstance").is_empty() {
        problems.required("reportingInstance", "");
    }
}

fn check_texts(event: &Value, note: &str, problems: &mut Problems) {
    for field in ["action", "reason"] {
        if text(event, field).is_empty() {
            problems.required(field, "");
        }
    }
    for (field, most) in [
        ("reportingInstance", 128),
        ("action", 128),
        ("reason", 128),
        (note, 1024),
    ] {
        if text(event, field).len() > most {
            let detail = format!("can have at most {most} characters");
            problems.invalid(field, "", detail);
        }
    }
}

fn validate_new_style(event: &Value, problems: &mut Problems) {
    if is_empty(event.get("eventTime")) {
        problems.required("eventTime", "");
    } else {
        check_reporter(event, "reportingController", problems);
        check_texts(event, "note", problems);
    }
    let kind = text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        problems.invalid("type", "", format!("has invalid value: {kind}"));
    }
    if is_set(event, "series") && number(&event["series"], "count") < 2 {
        problems.invalid("series.count", "", "should be at least 2");
    }
    for field in ["deprecatedFirstTimestamp", "deprecatedLastTimestamp"] {
        if is_set(event, field) {
            problems.invalid(field, "", "needs to be unset");
        }
    }
    if number(event, "deprecatedCount") != 0 {
        problems.invalid("deprecatedCount", "", "needs to be unset");
    }
    if event["deprecatedSource"]
        .as_object()
        .is_some_and(|source| !source.is_empty())
    {
        problems.invalid("deprecatedSource", "", "needs to be unset");
    }
}

/// Under the newer API only the series of an event may change.
fn validate_update(new: &Value, old: &Value, problems: &mut Problems) {
    // Errors use the stored names of the fields.
    for (field, stored) in [
        ("regarding", "involvedObject"),
        ("related", "related"),
        ("reason", "reason"),
        ("note", "message"),
        ("reportingController", "reportingComponent"),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("type", "type"),
        ("eventTime", "eventTime"),
    ] {
        let (now, before) = (new.get(field), old.get(field));
        if now != before && !(is_empty(now) && is_empty(before)) {
            let shown = now.cloned().unwrap_or_default();
            problems.invalid(stored, shown, "field is immutable");
        }
    }
}

#[cfg(test)]
mod tests;
