//! Validation of definitions on create and update.
//!
//! It runs in stages, each of which needs the one before: the names of the resource; the keywords
//! of its schemas; whether they are structural; and only then their meaning: defaults, rules and
//! the paths that lead into them.

mod defaults;
mod names;
mod structural;
#[cfg(test)]
mod tests;
mod version;
mod words;

use serde_json::{Value, json};

use crate::{schema::FieldPath, status::Problems};

/// The groups that are reserved for Kubernetes itself.
const PROTECTED: &[&str] = &["k8s.io", "kubernetes.io"];
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Fills the defaults of a definition.
pub fn default(object: &mut Value) {
    if let Some(names) = object.pointer_mut("/spec/names")
        && let Some(kind) = names["kind"].as_str().map(ToOwned::to_owned)
    {
        fill(names, "singular", || json!(kind.to_lowercase()));
        fill(names, "listKind", || json!(format!("{kind}List")));
    }
    if let Some(spec) = object.get_mut("spec") {
        fill(spec, "conversion", || json!({}));
    }
    if let Some(conversion) = object.pointer_mut("/spec/conversion") {
        fill(conversion, "strategy", || json!("None"));
    }
    fill(object, "status", || json!({}));
    if let Some(status) = object.get_mut("status") {
        fill(status, "conditions", || json!([]));
        fill(
            status,
            "acceptedNames",
            || json!({"kind": "", "plural": ""}),
        );
        fill(status, "storedVersions", || json!([]));
    }
}

fn fill(object: &mut Value, name: &str, value: impl FnOnce() -> Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let absent = fields
        .get(name)
        .is_none_or(|old| old.is_null() || old.as_str() == Some(""));
    if absent {
        fields.insert(name.to_owned(), value());
    }
}

/// Validates a definition on its own.
pub fn validate(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    let at = FieldPath::At("spec");
    let group = spec["group"].as_str().unwrap_or_default();
    names::group(group, problems);
    approval(group, object, problems);
    scope(spec, problems);
    names::names(&spec["names"], &at.field("names"), problems);
    conversion(&spec["conversion"], problems);
    if spec["preserveUnknownFields"] == true {
        problems.invalid(
            "spec.preserveUnknownFields",
            true,
            "cannot be set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        );
    }
    version::versions(spec, &at.field("versions"), problems);
    last_storage_version(object, problems);
}

/// Checks that a new definition is named after the resource it defines. Reported together with
/// other errors of the name.
pub fn validate_name(object: &Value, problems: &mut Problems) {
    let names = &object["spec"]["names"];
    let group = object["spec"]["group"].as_str().unwrap_or_default();
    let expected = format!("{}.{group}", names["plural"].as_str().unwrap_or_default());
    let mut at = 0;
    for (field, path) in [
        ("generateName", "metadata.generateName"),
        ("name", "metadata.name"),
    ] {
        at += problems
            .iter()
            .skip(at)
            .take_while(|e| e.path == path)
            .count();
        let given = object["metadata"][field].as_str().unwrap_or_default();
        if !given.is_empty() && given != expected {
            let detail = "must be spec.names.plural+\".\"+spec.group";
            problems.insert_invalid(at, path, given, detail);
            at += 1;
        }
    }
}

/// Of several storage versions the first is recorded as stored, and the last is checked.
fn last_storage_version(object: &Value, problems: &mut Problems) {
    let versions = object["spec"]["versions"].as_array().into_iter().flatten();
    let storage: Vec<&Value> = versions
        .filter(|version| version["storage"] == true)
        .map(|version| &version["name"])
        .collect();
    let [first, .., last] = storage.as_slice() else {
        return;
    };
    let stored = object["status"]["storedVersions"].as_array();
    let mut stored = stored.cloned().unwrap_or_default();
    if !stored.contains(first) {
        stored.push((*first).clone());
    }
    if !stored.contains(last) {
        let name = last.as_str().unwrap_or_default();
        let detail = format!("must have the storage version {name}");
        problems.invalid("status.storedVersions", stored, detail);
    }
}

fn approval(group: &str, object: &Value, problems: &mut Problems) {
    let protected = PROTECTED
        .iter()
        .any(|owner| group == *owner || group.ends_with(&format!(".{owner}")));
    if !protected {
        return;
    }
    let path = format!("metadata.annotations[{APPROVAL}]");
    let given = object["metadata"]["annotations"][APPROVAL].as_str();
    match given.unwrap_or_default() {
        "" => {
            let detail = format!("protected groups must have approval annotation \"{APPROVAL}\"");
            problems.required(path, detail);
        }
        given if given.starts_with("unapproved") || given.contains("://") => {}
        given => problems.invalid(
            path,
            given,
            "must be the URL of an approval, or begin with \"unapproved\"",
        ),
    }
}

fn scope(spec: &Value, problems: &mut Problems) {
    match spec["scope"].as_str().unwrap_or_default() {
        "Cluster" | "Namespaced" => {}
        "" => problems.required("spec.scope", ""),
        other => problems.not_supported("spec.scope", other, &["Cluster", "Namespaced"]),
    }
}

fn conversion(conversion: &Value, problems: &mut Problems) {
    let path = "spec.conversion.strategy";
    match conversion["strategy"].as_str().unwrap_or("None") {
        "None" => {
            if conversion.get("webhook").is_some_and(|w| !w.is_null()) {
                problems.forbidden(
                    "spec.conversion.webhook",
                    "should not be set when strategy is not set to Webhook",
                );
            }
        }
        "Webhook" => problems.invalid(
            path,
            "Webhook",
            "conversion webhooks are not offered by this server; use None, with which only apiVersion changes between versions",
        ),
        other => problems.not_supported(path, other, &["None", "Webhook"]),
    }
}

/// Validates a change of a definition. Arguments: new, old.
pub fn validate_update(new: &Value, old: &Value, problems: &mut Problems) {
    let mut immutable = vec!["/spec/group", "/spec/names/plural"];
    if is_established(old) {
        immutable.extend(["/spec/scope", "/spec/names/kind"]);
    }
    for pointer in immutable {
        let (is, was) = (new.pointer(pointer), old.pointer(pointer));
        if is != was {
            let path = pointer[1..].replace('/', ".");
            let shown = is.cloned().unwrap_or_default();
            problems.invalid(path, shown, "field is immutable");
        }
    }
    stored_versions(new, old, problems);
}

/// Every version that was once the storage version must stay: objects may still be stored in it.
fn stored_versions(new: &Value, old: &Value, problems: &mut Problems) {
    let empty = Vec::new();
    let versions = new["spec"]["versions"].as_array().unwrap_or(&empty);
    let stored = old["status"]["storedVersions"].as_array();
    for (index, stored) in stored.unwrap_or(&empty).iter().enumerate() {
        if !versions.iter().any(|version| version["name"] == *stored) {
            let version = stored.as_str().unwrap_or_default();
            let detail = format!(
                "missing from spec.versions; {version} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {version} and removes {version} from status.storedVersions"
            );
            problems.invalid(format!("status.storedVersions[{index}]"), version, detail);
        }
    }
}

fn is_established(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|conditions| {
        conditions
            .iter()
            .any(|c| c["type"] == "Established" && c["status"] == "True")
    })
}
