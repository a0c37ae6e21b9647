//! Writes that change nothing that can be seen, which a server stores or not for reasons that
//! cannot be seen either.
//!
//! Only whether the object got a new revision may differ in the answers to such a write, and in
//! them must be one of two reasons:
//!
//! - Entries of managed fields are in the order of their times, to the second. A write that only
//!   refreshes a time is stored if that moves an entry, so it is on one server alone if a second
//!   ended between the two: the entries are then in another order.
//! - The reference keeps blank metadata of an applied custom object (`labels: null`) in its store
//!   without showing it, and the next write, whatever it is, stores the object without it: an
//!   applier owns a field of the metadata that is not there.

use serde_json::Value;

use crate::compare::Difference;

/// Whether all that differs is that one server stored what cannot be seen.
pub(super) fn is_unseen(found: &[Difference], reference: &Value, pocket: &Value) -> bool {
    let revision = |difference: &Difference| difference.field == "revisions";
    let beside = |difference: &Difference| {
        matches!(
            difference.field.as_str(),
            "metadata.resourceVersion" | "metadata.managedFields[].time"
        )
    };
    found.iter().any(revision)
        && found.iter().all(|one| revision(one) || beside(one))
        && (owners(reference) != owners(pocket)
            || [reference, pocket].iter().any(|o| owns_blank(o)))
}

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten()
}

/// Who owns something, in order.
fn owners(object: &Value) -> Vec<[&Value; 4]> {
    entries(object)
        .map(|entry| ["manager", "operation", "apiVersion", "subresource"].map(|name| &entry[name]))
        .collect()
}

/// Whether an applier owns metadata that is not there, of a kind whose objects are kept as they
/// were sent.
fn owns_blank(object: &Value) -> bool {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let applied = entries(object).filter(|entry| entry["operation"] == "Apply");
    let mut fields = applied
        .filter_map(|entry| entry["fieldsV1"]["f:metadata"].as_object())
        .flatten();
    version.starts_with("shore.example.com/")
        && fields.any(|(name, below)| {
            let name = name.trim_start_matches("f:");
            below.as_object().is_some_and(serde_json::Map::is_empty)
                && object["metadata"].get(name).is_none()
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(managers: [&str; 2], labels: &Value) -> Value {
        let entries = managers.map(|manager| {
            json!({"manager": manager, "operation": "Apply",
            "fieldsV1": {"f:metadata": {"f:labels": {}}}})
        });
        let mut object = json!({"apiVersion": "shore.example.com/v1",
            "metadata": {"managedFields": entries}});
        if !labels.is_null() {
            object["metadata"]["labels"] = labels.clone();
        }
        object
    }

    fn found(fields: &[&str]) -> Vec<Difference> {
        let of = |field: &&str| Difference {
            field: (*field).into(),
            rule: String::new(),
            reference: Value::Null,
            pocket: Value::Null,
        };
        fields.iter().map(of).collect()
    }

    #[test]
    fn only_revisions_may_differ_and_only_for_a_reason() {
        let there = json!({"a": "b"});
        let ab = object(["a", "b"], &there);
        let ba = object(["b", "a"], &there);
        let blank = object(["a", "b"], &Value::Null);
        let revisions = found(&["metadata.resourceVersion", "revisions"]);
        let more = found(&["metadata.resourceVersion", "revisions", "spec"]);
        let seen = found(&["metadata.resourceVersion"]);
        for (found, theirs, ours, unseen) in [
            (&revisions, &ab, &ba, true),
            (&revisions, &blank, &blank, true),
            (&revisions, &ab, &ab, false),
            (&more, &ab, &ba, false),
            (&seen, &ab, &ba, false),
            (&found(&[]), &ab, &ba, false),
        ] {
            assert_eq!(is_unseen(found, theirs, ours), unseen, "{found:?}");
        }
    }
}
