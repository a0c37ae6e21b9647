use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    patch::{MAX_DEPTH, json::tests::nested},
    schema::builtin,
};

mod directives;
mod laws;

fn schema(kind: &str) -> Schema<'static> {
    let name = format!("io.k8s.api.{kind}");
    builtin().named(&name).unwrap_or_else(|| panic!("{name}"))
}

fn patched(kind: &str, live: Value, patch: Value) -> Value {
    apply(schema(kind), live, patch).unwrap_or_else(|e| panic!("{e}"))
}

fn refusal(kind: &str, live: Value, patch: Value) -> (u16, String) {
    let error = apply(schema(kind), live, patch).unwrap_err();
    (error.code.as_u16(), error.message)
}

/// A pod with these containers.
fn pod(containers: &Value) -> Value {
    json!({"spec": {"containers": containers}})
}

#[test]
fn maps_merge_and_null_deletes() {
    let live = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "data": {"x": "y"}});
    let patch = json!({"metadata": {"labels": {"a": null, "c": "3"}}, "data": null});
    let expected = json!({"metadata": {"labels": {"b": "2", "c": "3"}}});
    assert_eq!(patched("core.v1.ConfigMap", live, patch), expected);
}

#[test]
fn nulls_do_not_survive_in_new_maps() {
    let patch = json!({"metadata": {"labels": {"a": null, "b": "1"}}});
    let expected = json!({"metadata": {"labels": {"b": "1"}}});
    assert_eq!(patched("core.v1.ConfigMap", json!({}), patch), expected);
}

#[test]
fn lists_of_objects_merge_by_key() {
    let live = pod(&json!([
        {"name": "web", "image": "web:1", "args": ["a"]},
        {"name": "side", "image": "side:1"},
    ]));
    let patch = pod(&json!([{"name": "web", "image": "web:2"}]));
    let expected = pod(&json!([
        {"name": "web", "image": "web:2", "args": ["a"]},
        {"name": "side", "image": "side:1"},
    ]));
    assert_eq!(patched("core.v1.Pod", live, patch), expected);
}

#[test]
fn keyed_lists_inside_keyed_lists_merge() {
    let live = pod(
        &json!([{"name": "web", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]),
    );
    let patch = pod(
        &json!([{"name": "web", "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}]),
    );
    let expected = pod(&json!([{"name": "web", "env": [
        {"name": "A", "value": "1"}, {"name": "B", "value": "3"}, {"name": "C", "value": "4"},
    ]}]));
    assert_eq!(patched("core.v1.Pod", live, patch), expected);
}

#[test]
fn new_elements_come_before_those_of_the_server() {
    let live = pod(&json!([{"name": "b"}, {"name": "a"}]));
    let patch = pod(&json!([{"name": "z"}, {"name": "y", "image": null}]));
    let expected = pod(&json!([{"name": "z"}, {"name": "y"}, {"name": "b"}, {"name": "a"}]));
    assert_eq!(patched("core.v1.Pod", live, patch), expected);
}

#[test]
fn a_new_element_without_its_key_comes_first_as_well() {
    let live = pod(&json!([{"name": "b"}]));
    let patch = pod(&json!([{"name": null, "image": "i"}]));
    let expected = pod(&json!([{"image": "i"}, {"name": "b"}]));
    assert_eq!(patched("core.v1.Pod", live, patch), expected);
}

#[test]
fn a_list_with_an_element_that_has_no_key_is_not_merged() {
    let secrets = |items: Value| json!({"spec": {"imagePullSecrets": items}});
    let live = secrets(json!([{"name": "a"}, {}]));
    let ordered = json!({"spec": {"$setElementOrder/imagePullSecrets": [{"name": "a"}]}});
    for patch in [secrets(json!([{"name": "b"}])), ordered] {
        let told = refusal("core.v1.Pod", live.clone(), patch);
        let why = "map: map[] does not contain declared merge key: name";
        assert_eq!(told, (500, why.to_owned()));
    }
    let replaced = secrets(json!([{"name": "b"}, {"$patch": "replace"}]));
    let expected = secrets(json!([{"name": "b"}]));
    assert_eq!(patched("core.v1.Pod", live, replaced), expected);
}

#[test]
fn numeric_keys_identify_elements() {
    let live = json!({"spec": {"ports": [{"port": 80, "name": "http"}, {"port": 443}]}});
    let patch = json!({"spec": {"ports": [{"port": 443, "targetPort": 8443}]}});
    let expected = json!({"spec": {"ports": [
        {"port": 80, "name": "http"}, {"port": 443, "targetPort": 8443},
    ]}});
    assert_eq!(patched("core.v1.Service", live, patch), expected);
}

/// Ports may share a number and differ in protocol, which is not part of this key; the first of
/// them is meant, as in kube-apiserver.
#[test]
fn of_elements_with_one_key_the_first_is_meant() {
    let udp_and_tcp = json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]);
    let live = json!({"spec": {"ports": udp_and_tcp}});
    let patch = json!({"spec": {"ports": [{"port": 53, "name": "dns"}]}});
    let expected = json!({"spec": {"ports": [
        {"port": 53, "protocol": "UDP", "name": "dns"}, {"port": 53, "protocol": "TCP"},
    ]}});
    assert_eq!(patched("core.v1.Service", live, patch), expected);
}

#[test]
fn lists_of_scalars_with_merge_are_sets() {
    let live = json!({"metadata": {"finalizers": ["a", "b"]}});
    let patch = json!({"metadata": {"finalizers": ["b", "c", "c"]}});
    let expected = json!({"metadata": {"finalizers": ["a", "b", "c"]}});
    assert_eq!(patched("core.v1.Pod", live, patch), expected);
}

#[test]
fn maps_marked_replace_are_taken_as_a_whole() {
    let live = json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "1"}}}});
    let patch = json!({"spec": {"selector": {"matchLabels": {"b": "2", "c": null}}}});
    let expected = json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": {"b": "2"}}}});
    assert_eq!(
        patched("policy.v1.PodDisruptionBudget", live, patch),
        expected
    );
}

#[test]
fn lists_without_strategy_are_replaced() {
    let live = pod(&json!([{"name": "web", "args": ["a", "b"]}]));
    let patch = pod(&json!([{"name": "web", "args": ["c"]}]));
    let expected = pod(&json!([{"name": "web", "args": ["c"]}]));
    assert_eq!(patched("core.v1.Pod", live, patch), expected);
}

#[test]
fn fields_that_the_schema_does_not_know_merge_as_json() {
    let live = json!({"extra": {"a": {"b": 1}, "list": [{"name": "x"}]}});
    let patch = json!({"extra": {"a": {"c": 2}, "list": [{"name": "y"}]}});
    let expected = json!({"extra": {"a": {"b": 1, "c": 2}, "list": [{"name": "y"}]}});
    assert_eq!(patched("core.v1.Pod", live, patch), expected);
}

#[test]
fn a_change_of_type_takes_the_patch() {
    let live = json!({"spec": {"strategy": "x", "template": {"a": 1}}});
    let patch = json!({"spec": {"strategy": {"type": "Recreate"}, "template": [1]}});
    let expected = json!({"spec": {"strategy": {"type": "Recreate"}, "template": [1]}});
    assert_eq!(patched("apps.v1.Deployment", live, patch), expected);
}

#[test]
fn malformed_patches_are_refused_in_the_words_of_the_api() {
    let live =
        json!({"metadata": {"finalizers": ["a"]}, "spec": {"containers": [{"name": "web"}]}});
    for (patch, code, expected) in [
        (
            json!([]),
            400,
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            json!("x"),
            400,
            "json: cannot unmarshal string into Go value of type map[string]interface {}",
        ),
        (
            pod(&json!([{"image": "x"}])),
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            pod(&json!([{"$patch": "delete"}])),
            500,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            json!({"spec": {"$patch": "frob", "a": 1}}),
            500,
            "unknown patch type: frob in map: map[$patch:frob a:1]",
        ),
        (
            json!({"spec": {"$patch": 1}}),
            500,
            "unknown patch type: %!s(int64=1) in map: map[$patch:1]",
        ),
        (
            pod(&json!([{"name": "web", "$patch": "x"}])),
            500,
            "unknown patch type: x in map: map[$patch:x name:web]",
        ),
        (
            pod(&json!([{"$patch": "x"}])),
            500,
            "unknown patch type: x in map: map[$patch:x]",
        ),
        (
            pod(&json!(["x"])),
            500,
            "list element types are not identical: [[map[name:web]] [x]]",
        ),
        (
            json!({"metadata": {"finalizers": [["b"]]}}),
            500,
            "list element types are not identical: [[a] [[b]]]",
        ),
    ] {
        let told = refusal("core.v1.Pod", live.clone(), patch);
        assert_eq!(told, (code, expected.to_owned()));
    }
}

#[test]
fn malformed_directives_are_refused_in_the_words_of_the_api() {
    let live = pod(&json!([{"name": "web"}]));
    for (patch, code, expected) in [
        (
            json!({"$setElementOrder/containers": "x"}),
            500,
            "expected a []interface {}, but received a string",
        ),
        (
            json!({"$setElementOrder": []}),
            400,
            "invalid patch format of setElementOrder list",
        ),
        (
            json!({"$setElementOrder/containers": [{"image": "x"}]}),
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            json!({"$setElementOrder/containers": [], "containers": 1}),
            500,
            "expected a []interface {}, but received a int64",
        ),
        (
            json!({"$retainKeys": "a"}),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            json!({"$retainKeys": ["a"], "b": 1}),
            400,
            "invalid patch format of retainKeys",
        ),
    ] {
        let told = refusal("core.v1.Pod", live.clone(), json!({ "spec": patch }));
        assert_eq!(told, (code, expected.to_owned()));
    }
}

#[test]
fn deletions_without_a_list_delete_nothing() {
    let live = json!({"metadata": {"finalizers": ["a"]}});
    for directive in [
        json!({"$deleteFromPrimitiveList/finalizers": 1}),
        json!({"$deleteFromPrimitiveList/": []}),
        json!({"$deleteFromPrimitiveList/bogus": ["a"]}),
    ] {
        let patch = json!({ "metadata": directive });
        assert_eq!(patched("core.v1.Pod", live.clone(), patch), live);
    }
}

#[test]
fn errors_do_not_echo_a_whole_hostile_patch() {
    let live = pod(&json!([{"name": "web"}]));
    let patch = pod(&json!([{"image": "é".repeat(100_000)}]));
    let (_, message) = refusal("core.v1.Pod", live, patch);
    assert!(message.len() < 20_000, "{}", message.len());
}

#[test]
fn deep_patches_are_refused() {
    assert!(apply(schema("core.v1.Pod"), json!({}), nested(MAX_DEPTH)).is_ok());
    let (code, message) = refusal("core.v1.Pod", json!({}), nested(MAX_DEPTH + 1));
    assert_eq!(code, 400);
    assert!(message.contains("deeper than"));
}

#[test]
fn elements_of_a_merged_list_are_of_one_type() {
    let schema = builtin().named("io.k8s.api.core.v1.ConfigMap").unwrap();
    let live = json!({"metadata": {"finalizers": ["a/b"]}});
    let patch = json!({"metadata": {"finalizers": ["a/b", null]}});
    let error = apply(schema, live, patch).unwrap_err();
    assert_eq!(
        error.message,
        "list element types are not identical: [[a/b] [a/b <nil>]]"
    );
}
