use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Any small JSON value.
pub(in crate::patch) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-d]", inner, 0..4)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

/// Maps inside maps, `levels` of them.
pub(in crate::patch) fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({}), |inner, _| json!({"a": inner}))
}

#[test]
fn operations_run_in_order() {
    let live = json!({"metadata": {"labels": {"a": "1"}}, "list": [1, 2]});
    let patch = json!([
        {"op": "test", "path": "/metadata/labels/a", "value": "1"},
        {"op": "add", "path": "/metadata/labels/b~1c", "value": "2"},
        {"op": "remove", "path": "/metadata/labels/a"},
        {"op": "replace", "path": "/list/0", "value": 9},
        {"op": "add", "path": "/list/-", "value": 3},
        {"op": "add", "path": "/list/1", "value": 8},
        {"op": "copy", "from": "/list/0", "path": "/first"},
        {"op": "move", "from": "/list", "path": "/moved"},
    ]);
    let expected = json!({"metadata": {"labels": {"b/c": "2"}}, "first": 9, "moved": [9, 8, 2, 3]});
    assert_eq!(apply(live, patch).unwrap(), expected);
}

#[test]
fn positions_may_be_padded_signed_and_counted_from_the_end() {
    for (operation, list) in [
        (
            json!({"op": "add", "path": "/l/02", "value": 9}),
            json!([1, 2, 9]),
        ),
        (
            json!({"op": "add", "path": "/l/+1", "value": 9}),
            json!([1, 9, 2]),
        ),
        (
            json!({"op": "add", "path": "/l/-1", "value": 9}),
            json!([1, 2, 9]),
        ),
        (
            json!({"op": "add", "path": "/l/-3", "value": 9}),
            json!([9, 1, 2]),
        ),
        (json!({"op": "remove", "path": "/l/-1"}), json!([1])),
        (
            json!({"op": "replace", "path": "/l/01", "value": 9}),
            json!([1, 9]),
        ),
        (
            json!({"op": "copy", "from": "/l/-1", "path": "/l/00"}),
            json!([2, 1, 2]),
        ),
    ] {
        let patched = apply(json!({"l": [1, 2]}), json!([operation])).unwrap();
        assert_eq!(patched, json!({"l": list}));
    }
    for operation in [
        json!({"op": "add", "path": "/l/-4", "value": 9}),
        json!({"op": "remove", "path": "/l/-3"}),
        json!({"op": "add", "path": "/l/1e0", "value": 9}),
    ] {
        assert!(apply(json!({"l": [1, 2]}), json!([operation])).is_err());
    }
    let named = apply(
        json!({"m": {}}),
        json!([{"op": "add", "path": "/m/01", "value": 9}]),
    );
    assert_eq!(named.unwrap(), json!({"m": {"01": 9}}));
}

#[test]
fn what_does_not_fit_the_object_is_invalid() {
    let live = json!({"a": {"b": 1}, "l": [1]});
    for operation in [
        json!({"op": "test", "path": "/a/b", "value": 2}),
        json!({"op": "test", "path": "/a/x", "value": 2}),
        json!({"op": "test", "path": "/x/y", "value": null}),
        json!({"op": "test", "path": "/l/5", "value": null}),
        json!({"op": "test", "path": "/a/b", "value": null}),
        json!({"op": "remove", "path": "/a/x"}),
        json!({"op": "move", "from": "/a/x", "path": "/y"}),
        json!({"op": "replace", "path": "/x/y", "value": 1}),
        json!({"op": "replace", "path": "/l/5", "value": 1}),
        json!({"op": "add", "path": "/x/y", "value": 1}),
        json!({"op": "add", "path": "/l/5", "value": 1}),
        json!({"op": "add", "path": "/l/x", "value": 1}),
        json!({"op": "copy", "from": "/x/y", "path": "/y"}),
        json!({"op": "copy", "from": "/l/5", "path": "/y"}),
        json!({"op": "copy", "path": "/y"}),
        json!({"op": "frob", "path": "/a"}),
        json!({"op": "remove"}),
        json!({"op": "remove", "path": "a"}),
        json!({"op": "add", "value": 1}),
        json!({"path": "/a"}),
        json!({"op": "move", "from": "/a", "path": "/a/b"}),
    ] {
        let error = apply(live.clone(), json!([operation])).unwrap_err();
        assert_eq!(
            (error.code.as_u16(), error.reason),
            (422, "Invalid"),
            "{operation}"
        );
        assert_eq!(
            error.message,
            "the server rejected our request due to an error in our request"
        );
        assert!(error.causes.is_empty(), "{operation}");
    }
}

#[test]
fn malformed_patches_are_bad_requests() {
    for (patch, expected) in [
        (
            json!({}),
            "object into Go value of type []handlers.jsonPatchOp",
        ),
        (
            json!([1]),
            "number into Go value of type handlers.jsonPatchOp",
        ),
        (
            json!([{"op": "add", "path": 5}]),
            "number into Go struct field jsonPatchOp.path of type string",
        ),
        (
            json!([{"op": true, "path": "/a"}]),
            "bool into Go struct field jsonPatchOp.op of type string",
        ),
    ] {
        let error = apply(json!({}), patch.clone()).unwrap_err();
        assert_eq!(error.code.as_u16(), 400, "{patch}");
        assert_eq!(
            error.message,
            format!("error decoding patch: json: cannot unmarshal {expected}")
        );
    }
}

#[test]
fn what_a_map_does_not_have_is_null() {
    let live = json!({"a": {"b": 1}});
    for (operation, expected) in [
        (
            json!({"op": "replace", "path": "/a/x", "value": 1}),
            json!({"a": {"b": 1, "x": 1}}),
        ),
        (
            json!({"op": "copy", "from": "/x", "path": "/a/b"}),
            json!({"a": {"b": null}}),
        ),
        (
            json!({"op": "add", "path": "/x"}),
            json!({"a": {"b": 1}, "x": null}),
        ),
        (
            json!({"op": "replace", "path": "/a/b"}),
            json!({"a": {"b": null}}),
        ),
        (json!({"op": "test", "path": "/a/x"}), live.clone()),
    ] {
        let patched = apply(live.clone(), json!([operation])).unwrap();
        assert_eq!(patched, expected, "{operation}");
    }
}

#[test]
fn a_test_for_null_passes_on_an_absent_field() {
    let patch = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["a/b"]},
    ]);
    let patched = apply(json!({"metadata": {}}), patch.clone()).unwrap();
    assert_eq!(patched, json!({"metadata": {"finalizers": ["a/b"]}}));
    assert!(apply(patched, patch).is_err());
}

#[test]
fn ten_thousand_operations_are_allowed_and_one_more_is_not() {
    let test = json!({"op": "test", "path": "", "value": {}});
    assert!(apply(json!({}), json!(vec![test.clone(); 10_000])).is_ok());
    let error = apply(json!({}), json!(vec![test; 10_001])).unwrap_err();
    assert_eq!(
        (error.code.as_u16(), error.reason),
        (413, "RequestEntityTooLarge")
    );
    assert!(
        error
            .message
            .ends_with("The allowed maximum operations in a JSON patch is 10000, got 10001")
    );
}

#[test]
fn copies_cannot_double_a_document_without_end() {
    let live = json!({"a": ["x".repeat(1000)]});
    let patch: Vec<Value> = (0..64)
        .map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"}))
        .collect();
    let error = apply(live, Value::Array(patch)).unwrap_err();
    assert_eq!(error.code.as_u16(), 413);
    assert!(error.message.contains("copy operations"), "{error}");
}

#[test]
fn many_copies_of_one_value_count_together() {
    let live = json!({"a": "x".repeat(1024 * 1024), "l": []});
    let copy = json!({"op": "copy", "from": "/a", "path": "/l/-"});
    assert!(apply(live.clone(), json!(vec![copy.clone(); 2])).is_ok());
    let error = apply(live, json!(vec![copy; 4])).unwrap_err();
    assert_eq!(error.code.as_u16(), 413);
}

#[test]
fn insertions_at_the_front_of_a_long_list_are_bounded_together() {
    let live = |entries: usize| json!({"list": vec![Value::Null; entries]});
    let patch = |path: &str| {
        let one = json!({"op": "add", "path": path, "value": 1});
        Value::from(vec![one; 1000])
    };
    assert!(apply(live(20_000), patch("/list/0")).is_ok());
    assert!(apply(live(100_000), patch("/list/-")).is_ok());
    let refused = apply(live(100_000), patch("/list/0")).unwrap_err();
    assert_eq!(refused.code.as_u16(), 413);
    let removals = vec![json!({"op": "remove", "path": "/list/0"}); 1000];
    assert_eq!(
        apply(live(100_000), removals.into())
            .unwrap_err()
            .code
            .as_u16(),
        413
    );
}

#[test]
fn operations_cannot_nest_a_document_without_end() {
    let grow = json!({"op": "add", "path": "/a".repeat(64), "value": nested(70)});
    let patch = json!([{"op": "add", "path": "/a", "value": nested(64)}, grow]);
    let error = apply(json!({}), patch).unwrap_err();
    assert!(error.message.contains("deeper than"), "{error}");

    let step = json!({"op": "copy", "from": "/a", "path": "/a/b"});
    let wrap = json!([
        {"op": "add", "path": "/b", "value": {}},
        {"op": "move", "from": "/a", "path": "/b/a"},
        {"op": "move", "from": "/b", "path": "/a"},
    ]);
    let mut patch = vec![step];
    for _ in 0..1000 {
        patch.extend(wrap.as_array().unwrap().iter().cloned());
    }
    let error = apply(json!({"a": {}}), Value::Array(patch)).unwrap_err();
    assert_eq!(error.code.as_u16(), 400);
}

fn any_operation() -> impl Strategy<Value = Value> {
    let path = "(/[a-d0-3~-]{0,2}){0,3}";
    let op = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]);
    (op, path, path, any_json()).prop_map(
        |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}),
    )
}

proptest! {
    #[test]
    fn any_operations_are_applied_or_refused(live in any_json(), patch in prop::collection::vec(any_operation(), 0..6)) {
        if let Err(error) = apply(live, Value::Array(patch)) {
            prop_assert!(error.code.is_client_error());
        }
    }

    #[test]
    fn a_computed_patch_leads_from_one_document_to_the_other(from in any_json(), to in any_json()) {
        let patch = serde_json::to_value(json_patch::diff(&from, &to)).unwrap();
        prop_assert_eq!(apply(from, patch).unwrap(), to);
    }
}
