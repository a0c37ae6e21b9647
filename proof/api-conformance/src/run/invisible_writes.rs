//! Writes without a visible change, which a server stores or not for an invisible reason.
//!
//! Entries of managed fields are ordered by their times, in whole seconds. A write that only
//! refreshes a time is stored if that moves an entry, so it happens on only one server if a second
//! ended between the two. In the responses to such a write only the revision of the object may
//! differ, and the entries must be in another order.

use serde_json::Value;

use crate::compare::Difference;

/// Whether the only difference is that one server stored an invisible change.
pub(super) fn is_invisible_write(found: &[Difference], reference: &Value, pocket: &Value) -> bool {
    let revision = |difference: &Difference| difference.field == "revisions";
    let beside = |difference: &Difference| {
        matches!(
            difference.field.as_str(),
            "metadata.resourceVersion" | "metadata.managedFields[].time"
        )
    };
    found.iter().any(revision)
        && found.iter().all(|one| revision(one) || beside(one))
        && owners(reference) != owners(pocket)
}

/// The owners of managed fields, in order.
fn owners(object: &Value) -> Vec<[&Value; 4]> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .map(|entry| ["manager", "operation", "apiVersion", "subresource"].map(|name| &entry[name]))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(managers: [&str; 2]) -> Value {
        let entries = managers.map(|manager| json!({"manager": manager, "operation": "Apply"}));
        json!({"metadata": {"managedFields": entries}})
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
        let ab = object(["a", "b"]);
        let ba = object(["b", "a"]);
        let revisions = found(&["metadata.resourceVersion", "revisions"]);
        let more = found(&["metadata.resourceVersion", "revisions", "spec"]);
        let seen = found(&["metadata.resourceVersion"]);
        for (found, theirs, ours, unseen) in [
            (&revisions, &ab, &ba, true),
            (&revisions, &ab, &ab, false),
            (&more, &ab, &ba, false),
            (&seen, &ab, &ba, false),
            (&found(&[]), &ab, &ba, false),
        ] {
            assert_eq!(is_invisible_write(found, theirs, ours), unseen, "{found:?}");
        }
    }
}
