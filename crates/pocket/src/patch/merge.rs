//! JSON merge patch (RFC 7386): maps merge, null removes, everything else replaces.

use serde_json::{Map, Value};

use super::bounds::refuse_deep;
use crate::{
    schema::go::json_type,
    status::{ApiError, Result},
};

/// The live object with the patch merged into it.
pub fn apply(mut live: Value, patch: Value) -> Result<Value> {
    if !patch.is_object() {
        return Err(ApiError::bad_request(not_a_map(&patch)));
    }
    refuse_deep(&patch)?;
    merge(&mut live, patch);
    Ok(live)
}

/// The error for a patch that is no map.
pub(super) fn not_a_map(patch: &Value) -> String {
    let found = json_type(patch);
    format!(
        "error decoding patch: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
    )
}

/// The merge of values without a schema.
pub fn merge(live: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *live = patch;
        return;
    };
    if !live.is_object() {
        *live = Value::Object(Map::new());
    }
    if let Value::Object(live) = live {
        for (key, value) in patch {
            merge_field(live, key, value);
        }
    }
}

fn merge_field(live: &mut Map<String, Value>, key: String, value: Value) {
    if value.is_null() {
        live.remove(&key);
    } else if let Some(old) = live.get_mut(&key) {
        merge(old, value);
    } else {
        let mut new = Value::Null;
        merge(&mut new, value);
        live.insert(key, new);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::patch::{
        MAX_DEPTH,
        json::tests::{any_json, nested},
    };

    #[test]
    fn examples_of_the_rfc() {
        for (live, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": "b"}),
                json!({"b": "c"}),
                json!({"a": "b", "b": "c"}),
            ),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (
                json!({"a": "b", "b": "c"}),
                json!({"a": null}),
                json!({"b": "c"}),
            ),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (
                json!({"a": [{"b": "c"}]}),
                json!({"a": [1]}),
                json!({"a": [1]}),
            ),
            (
                json!({"e": null}),
                json!({"a": 1}),
                json!({"e": null, "a": 1}),
            ),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
        ] {
            assert_eq!(
                apply(live.clone(), patch.clone()).unwrap(),
                expected,
                "{live} + {patch}"
            );
        }
    }

    #[test]
    fn a_patch_that_is_no_object_is_refused() {
        for patch in [json!([]), json!("x"), json!(null), json!(1)] {
            assert_eq!(apply(json!({}), patch).unwrap_err().code.as_u16(), 400);
        }
    }

    #[test]
    fn deep_patches_are_refused() {
        assert!(apply(json!({}), nested(MAX_DEPTH)).is_ok());
        let error = apply(json!({}), nested(MAX_DEPTH + 1)).unwrap_err();
        assert!(error.message.contains("deeper than 127 levels"));
    }

    fn without_nulls(value: &mut Value) {
        if let Value::Object(map) = value {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(without_nulls);
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_reference(live in any_json(), patch in any_json()) {
            let mut expected = live.clone();
            json_patch::merge(&mut expected, &patch);
            let mut merged = live;
            merge(&mut merged, patch);
            prop_assert_eq!(merged, expected);
        }

        #[test]
        fn merging_twice_is_merging_once(live in any_json(), patch in any_json()) {
            let mut once = live;
            merge(&mut once, patch.clone());
            let mut twice = once.clone();
            merge(&mut twice, patch);
            prop_assert_eq!(twice, once);
        }

        #[test]
        fn an_object_without_nulls_merged_into_itself_is_itself(mut value in any_json()) {
            without_nulls(&mut value);
            let mut merged = value.clone();
            merge(&mut merged, value.clone());
            prop_assert_eq!(merged, value);
        }
    }
}
