//! Validation of `metadata`, the same for every kind.
//!
//! The caller has already filled in the fields that the server owns (uid, creationTimestamp,
//! namespace); this module only validates.

mod owners;

pub use owners::dedup_owners;

use std::collections::HashSet;

use serde_json::Value;

use super::{
    NameRule,
    fields::{entries, is_empty, list, number, text},
    names::{self, Complaints},
};
use crate::status::Problems;

/// Bytes in all keys and values of the annotations together, at most.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

/// Finalizers that need no domain: the server and its controllers own them.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

impl NameRule {
    /// The errors of a whole name.
    pub fn complaints(self, name: &str) -> Complaints {
        match self {
            Self::Subdomain => names::subdomain(name),
            Self::Label => names::label(name),
            Self::Rfc1035 => names::label_1035(name),
            Self::PathSegment | Self::Changed => names::path_segment(name),
        }
    }

    fn prefix_complaints(self, prefix: &str) -> Complaints {
        match self {
            Self::PathSegment => names::path_segment(prefix),
            Self::Changed => names::path_segment_prefix(prefix),
            _ => self.complaints(&names::without_trailing_dash(prefix)),
        }
    }
}

/// Validates the metadata of one object.
pub fn validate_metadata(
    object: &Value,
    rule: NameRule,
    namespaced: bool,
    problems: &mut Problems,
) {
    let metadata = &object["metadata"];
    check_name(metadata, rule, problems);
    check_namespace(metadata, namespaced, problems);
    if number(metadata, "generation") < 0 {
        let value = metadata["generation"].clone();
        let detail = "must be greater than or equal to 0";
        problems.invalid("metadata.generation", value, detail);
    }
    check_labels(metadata, "metadata.labels", problems);
    check_annotations(metadata, "metadata.annotations", problems);
    owners::check(list(metadata, "ownerReferences"), problems);
    check_finalizers(metadata, problems);
}

/// Validates an embedded object: its apiVersion, kind and metadata.
pub fn validate_embedded(object: &Value, path: &str, problems: &mut Problems) {
    let (version, kind) = (text(object, "apiVersion"), text(object, "kind"));
    if version.matches('/').count() > 1 {
        let detail = format!("unexpected GroupVersion string: {version}");
        problems.invalid(format!("{path}.apiVersion"), version, detail);
    }
    let complaints = names::label_1035(&kind.to_lowercase());
    if !kind.is_empty() && !complaints.is_empty() {
        let form = complaints.join(",");
        let detail = format!("may have mixed case, but should otherwise match: {form}");
        problems.invalid(format!("{path}.kind"), kind, detail);
    }
    let Some(metadata) = object.get("metadata").filter(|value| value.is_object()) else {
        return;
    };
    let mut named = serde_json::json!({"metadata": metadata});
    if text(metadata, "name").is_empty() {
        // It need not have a name.
        named["metadata"]["name"] = "fakename".into();
    }
    let namespaced = !text(metadata, "namespace").is_empty();
    let mut found = Problems::new();
    validate_metadata(&named, NameRule::Changed, namespaced, &mut found);
    for error in &found {
        let mut error = error.clone();
        error.path = format!("{path}.{}", error.path);
        problems.push(error);
    }
}

/// Validates the labels and annotations of metadata inside an object, such as a template's.
pub fn validate_template_metadata(metadata: &Value, path: &str, problems: &mut Problems) {
    check_labels(metadata, &format!("{path}.labels"), problems);
    check_annotations(metadata, &format!("{path}.annotations"), problems);
}

fn check_name(metadata: &Value, rule: NameRule, problems: &mut Problems) {
    let (name, prefix) = (text(metadata, "name"), text(metadata, "generateName"));
    for complaint in (!prefix.is_empty())
        .then(|| rule.prefix_complaints(prefix))
        .into_iter()
        .flatten()
    {
        let complaint = complaint.replace("bytes", "characters");
        problems.invalid("metadata.generateName", prefix, complaint);
    }
    if name.is_empty() {
        if prefix.is_empty() {
            problems.required("metadata.name", "name or generateName is required");
        }
        return;
    }
    for complaint in rule.complaints(name) {
        // Names are measured in characters and everything else in bytes.
        let complaint = complaint.replace("bytes", "characters");
        problems.invalid("metadata.name", name, complaint);
    }
}

fn check_namespace(metadata: &Value, namespaced: bool, problems: &mut Problems) {
    let namespace = text(metadata, "namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => problems.required("metadata.namespace", ""),
        (true, false) => {
            for complaint in names::label(namespace) {
                problems.invalid("metadata.namespace", namespace, complaint);
            }
        }
        (false, true) => {}
        (false, false) => problems.forbidden("metadata.namespace", "not allowed on this type"),
    }
}

fn check_labels(metadata: &Value, path: &str, problems: &mut Problems) {
    check_label_map(metadata, "labels", path, problems);
}

/// Validates any map of labels, such as a selector of exact values.
pub(super) fn check_label_map(holder: &Value, key: &str, path: &str, problems: &mut Problems) {
    for (key, value) in entries(holder, key) {
        for complaint in names::qualified(key) {
            problems.invalid(path, key.as_str(), complaint);
        }
        let value = value.as_str().unwrap_or_default();
        for complaint in names::label_value(value) {
            problems.invalid(path, value, complaint);
        }
    }
}

fn check_annotations(metadata: &Value, path: &str, problems: &mut Problems) {
    let mut bytes = 0;
    for (key, value) in entries(metadata, "annotations") {
        // Keys are compared without case, so capitals in the domain are fine.
        for complaint in names::qualified(&key.to_lowercase()) {
            problems.invalid(path, key.as_str(), complaint);
        }
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > MAX_ANNOTATIONS_BYTES {
        problems.too_long(path, MAX_ANNOTATIONS_BYTES);
    }
}

fn check_finalizers(metadata: &Value, problems: &mut Problems) {
    const PATH: &str = "metadata.finalizers";
    let finalizers = list(metadata, "finalizers");
    for finalizer in finalizers.iter().filter_map(Value::as_str) {
        for complaint in names::qualified(finalizer) {
            problems.invalid(PATH, finalizer, complaint);
        }
    }
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        problems.invalid(PATH, Value::from(finalizers), detail);
    }
}

/// The stricter rule of built-in kinds: a finalizer that is not the server's own must have a
/// domain.
pub fn validate_finalizer_domains(object: &Value, problems: &mut Problems) {
    for (index, finalizer) in undomained(object) {
        let path = format!("metadata.finalizers[{index}]");
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        problems.invalid(path, finalizer, detail);
    }
}

/// Warnings for a custom kind, where built-in kinds are refused.
pub fn finalizer_warnings(object: &Value) -> Vec<String> {
    let warn = |(_, finalizer): (usize, &str)| {
        let path = if finalizer.contains('.') {
            " including a path (/)"
        } else {
            ""
        };
        format!(
            "metadata.finalizers: \"{finalizer}\": prefer a domain-qualified finalizer name{path} \
             to avoid accidental conflicts with other finalizer writers"
        )
    };
    undomained(object).map(warn).collect()
}

fn undomained(object: &Value) -> impl Iterator<Item = (usize, &str)> {
    let finalizers = list(&object["metadata"], "finalizers").iter().enumerate();
    finalizers
        .filter_map(|(index, finalizer)| Some((index, finalizer.as_str()?)))
        .filter(|(_, finalizer)| !finalizer.contains('/'))
        .filter(|(_, finalizer)| !STANDARD_FINALIZERS.contains(finalizer))
}

/// Validates the metadata of every changed object, whatever its kind; the kind's own validation
/// follows and repeats some of it.
pub fn validate_changed_metadata(
    new: &Value,
    old: &Value,
    namespaced: bool,
    problems: &mut Problems,
) {
    validate_metadata(new, NameRule::Changed, namespaced, problems);
    validate_metadata_update(new, old, problems);
}

/// Validates a change of metadata.
pub fn validate_metadata_update(new: &Value, old: &Value, problems: &mut Problems) {
    let (new, old) = (&new["metadata"], &old["metadata"]);
    check_no_new_finalizers(new, old, problems);
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let (now, before) = (new.get(field), old.get(field));
        if now != before && !(is_empty(now) && is_empty(before)) {
            let path = format!("metadata.{field}");
            problems.invalid(path, new[field].clone(), "field is immutable");
        }
    }
    if number(new, "generation") < number(old, "generation") {
        let value = new["generation"].clone();
        problems.invalid("metadata.generation", value, "must not be decremented");
    }
    check_labels(new, "metadata.labels", problems);
    check_annotations(new, "metadata.annotations", problems);
    owners::check(list(new, "ownerReferences"), problems);
}

fn check_no_new_finalizers(new: &Value, old: &Value, problems: &mut Problems) {
    if is_empty(old.get("deletionTimestamp")) {
        return;
    }
    let held: HashSet<&Value> = list(old, "finalizers").iter().collect();
    let mut added: Vec<String> = list(new, "finalizers")
        .iter()
        .filter(|finalizer| !held.contains(finalizer))
        .map(Value::to_string)
        .collect();
    if added.is_empty() {
        return;
    }
    added.sort();
    added.dedup();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    problems.forbidden("metadata.finalizers", detail);
}

#[cfg(test)]
mod tests;
