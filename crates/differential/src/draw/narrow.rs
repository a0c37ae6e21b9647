//! What no client means, taken out of drawn calls: the reference answers it by how it keeps values
//! in memory or by what second it is, and nobody can follow that.

use serde_json::{Map, Value};

use super::Drawer;
use crate::call::{Body, Call, Captures};

/// Fields that hold maps of bytes, or of text that is frozen like them.
const DATA: [&str; 2] = ["data", "binaryData"];

impl Drawer {
    /// Narrows a call to what can be followed, given the last state of its object.
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
        if let Some(object) = object {
            narrow_end(body, object, patch);
        }
        call
    }
}

/// Bytes that are null are kept in another way than empty ones, although both are shown the same;
/// so is an empty map, which differs from none only once data may not change any more.
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

/// Whoever tries to change when an object ends is noted with the time of trying, and nothing else:
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
    fn nobody_moves_the_end_of_an_object() {
        let mut body = json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}});
        let fields = body.as_object_mut().unwrap();
        narrow_end(fields, &json!({"metadata": {}}), false);
        let ending = json!({"metadata": {"deletionTimestamp": "t"}});
        assert!(fields["metadata"].get("deletionTimestamp").is_some());
        narrow_end(fields, &ending, false);
        assert_eq!(body, json!({"metadata": {}}));
    }
}
