//! Removes from calls what no client means: the reference's response to it depends on how it stores
//! values in memory or on the current second, and cannot be reproduced.

use serde_json::{Map, Value};

use super::CallGenerator;
use crate::call::{Body, Call, Captures};

/// Fields with maps of bytes, or of text that is immutable with them.
const DATA: [&str; 2] = ["data", "binaryData"];

impl CallGenerator {
    /// Narrows a call to what can be reproduced, given the last state of its object.
    pub(super) fn narrow(&self, mut call: Call, captures: &Captures) -> Call {
        let Body::Json(Value::Object(body)) = &mut call.body else {
            return call;
        };
        let object = call.about.object.as_ref().and_then(|(namespace, name)| {
            let mut all = self.objects.iter();
            let known = all.find(|known| known.name == *name && known.namespace == *namespace)?;
            captures.get(known.seen.last()?)
        });
        let patch = call.about.verb.starts_with("patch");
        if matches!(call.about.kind.as_str(), "ConfigMap" | "Secret") {
            narrow_data(body, object, patch);
        }
        if call.about.kind == "Role" {
            narrow_rules(body);
        }
        if call.about.kind == "Lease" && object.is_some() {
            narrow_election(body);
        }
        if let Some(object) = object {
            narrow_end(body, object, patch);
        }
        call
    }
}

/// Null bytes are stored in another way than empty ones, although both look the same; an empty map
/// differs from none only once data is immutable.
fn narrow_data(body: &mut Map<String, Value>, object: Option<&Value>, patch: bool) {
    let frozen = object.is_some_and(|object| object["immutable"] == true);
    for field in DATA {
        let Some(Value::Object(entries)) = body.get_mut(field) else {
            continue;
        };
        if !patch {
            for value in entries.values_mut().filter(|value| value.is_null()) {
                *value = "".into();
            }
        }
        if frozen && entries.is_empty() {
            body.remove(field);
        }
    }
}

/// Inside an atomic list, an empty list differs from none until it is stored.
fn narrow_rules(body: &mut Map<String, Value>) {
    let rules = body.get_mut("rules").and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten().filter_map(Value::as_object_mut) {
        for field in ["resourceNames", "nonResourceURLs"] {
            if rule
                .get(field)
                .and_then(Value::as_array)
                .is_some_and(Vec::is_empty)
            {
                rule.remove(field);
            }
        }
    }
}

/// Fields that are not stored, although the manager who tried to set them is recorded: only the
/// time changes, as with the deletion of an object.
fn narrow_election(body: &mut Map<String, Value>) {
    if let Some(Value::Object(spec)) = body.get_mut("spec") {
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
}

/// An attempt to change when an object is deleted is recorded with its time, and nothing else:
/// whether that is a change depends on the second.
fn narrow_end(body: &mut Map<String, Value>, object: &Value, patch: bool) {
    let ends = object["metadata"].get("deletionTimestamp").is_some();
    let Some(Value::Object(metadata)) = body.get_mut("metadata").filter(|_| ends) else {
        return;
    };
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        let given = metadata.get(field);
        let echo = given
            .and_then(Value::as_str)
            .is_some_and(|text| text.starts_with('⟦'))
            || given == object["metadata"].get(field);
        if patch || !echo {
            metadata.remove(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn frozen_data_is_not_emptied_and_bytes_are_not_null() {
        let mut body = json!({"data": {}, "binaryData": {"a": null}});
        let fields = body.as_object_mut().unwrap();
        narrow_data(fields, Some(&json!({"immutable": true})), false);
        assert_eq!(body, json!({"binaryData": {"a": ""}}));
    }

    #[test]
    fn the_deletion_time_of_an_object_is_not_changed() {
        let mut body = json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}});
        let fields = body.as_object_mut().unwrap();
        narrow_end(fields, &json!({"metadata": {}}), false);
        let ending = json!({"metadata": {"deletionTimestamp": "t"}});
        assert!(fields["metadata"].get("deletionTimestamp").is_some());
        narrow_end(fields, &ending, false);
        assert_eq!(body, json!({"metadata": {}}));
    }
}
