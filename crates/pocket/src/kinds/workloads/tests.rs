//! The rules of these kinds as a client sees them: through the table, one write at a time.

mod apps;
mod batch;
mod defaults;
mod laws;
mod networking;
mod policies;
mod rbac;
mod webhooks;

use serde_json::{Value, json};

use super::{
    super::testing::{moment, texts},
    *,
};
use crate::status::Problems;

const UID: &str = "14807b12-e464-404e-a515-c56d9f7d5f1b";

fn rules(plural: &str) -> Rules {
    let row = workload_kinds().iter().find(|kind| kind.plural == plural);
    row.unwrap_or_else(|| panic!("no kind is served as {plural}"))
        .rules
}

/// The object as a create would store it.
fn created(plural: &str, sent: &Value) -> Value {
    let mut object = sent.clone();
    let rules = rules(plural);
    (rules.default)(&mut object);
    object["metadata"]["uid"] = json!(UID);
    (rules.prepare_create)(&mut object, &moment());
    object
}

/// The errors of a create of this object.
fn refusals(plural: &str, sent: &Value) -> Vec<String> {
    let mut problems = Problems::new();
    (rules(plural).validate)(&created(plural, sent), &mut problems);
    texts(&problems)
}

/// The errors of an update of a created object; `change` edits what the client read.
fn refusals_of_change(plural: &str, sent: &Value, change: impl FnOnce(&mut Value)) -> Vec<String> {
    let old = created(plural, sent);
    let new = updated(plural, &old, change);
    let mut problems = Problems::new();
    let rules = rules(plural);
    (rules.validate)(&new, &mut problems);
    (rules.validate_update)(&new, &old, &mut problems);
    texts(&problems)
}

fn updated(plural: &str, old: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let rules = rules(plural);
    let mut new = old.clone();
    change(&mut new);
    (rules.default)(&mut new);
    (rules.prepare_update)(&mut new, old);
    new
}

/// The errors of a write of this status.
fn refusals_of_status(plural: &str, old: &Value, status: Value) -> Vec<String> {
    let mut new = old.clone();
    new["status"] = status;
    let mut problems = Problems::new();
    (rules(plural).validate_status)(&new, old, &mut problems);
    texts(&problems)
}

fn pod_template(restart: &str) -> Value {
    json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"restartPolicy": restart, "containers": [{"name": "c", "image": "x"}]},
    })
}

/// A workload of apps with `spec` over the minimum it needs.
fn workload(spec: Value) -> Value {
    let mut all = json!({
        "selector": {"matchLabels": {"a": "b"}},
        "template": pod_template("Always"),
    });
    merge(&mut all, spec);
    json!({"metadata": {"name": "x1", "namespace": "default"}, "spec": all})
}

/// Merges the fields of `over` into `under`, one level deep.
fn merge(under: &mut Value, over: Value) {
    let Value::Object(over) = over else { return };
    for (key, value) in over {
        under[key] = value;
    }
}
