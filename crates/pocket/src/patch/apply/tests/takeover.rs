//! From client-side to server-side apply.

use super::*;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object as `kubectl apply` without `--server-side` leaves it.
fn client_side(data: &Value) -> Story {
    let config = config_map(data);
    let mut story = Story::of(config_map_schema());
    story.update("kubectl-client-side-apply", |object| {
        *object = config.clone();
        object["metadata"]["annotations"] = json!({ANNOTATION: format!("{config}\n")});
    });
    story
}

#[test]
fn kubectl_changes_what_it_applied_on_the_client_and_takes_nothing_else() {
    let mut story = client_side(&json!({"a": "1", "b": "1"}));
    let object = story.apply("kubectl", &config_map(&json!({"a": "2"})));
    assert_eq!(object["data"], json!({"a": "2", "b": "1"}));
    assert_eq!(owned(object, "kubectl"), json!({"f:data": {"f:a": {}}}));
    assert_eq!(
        owned(object, "kubectl-client-side-apply")["f:data"],
        json!({".": {}, "f:b": {}})
    );
}

#[test]
fn the_annotation_stays_and_follows() {
    let mut story = client_side(&json!({"a": "1"}));
    let config = config_map(&json!({"a": "2"}));
    let object = story.apply("kubectl", &config);
    let text = object["metadata"]["annotations"][ANNOTATION]
        .as_str()
        .unwrap();
    assert_eq!(text, format!("{config}\n"));
}

#[test]
fn another_manager_does_not_inherit() {
    let mut story = client_side(&json!({"a": "1", "b": "1"}));
    assert_eq!(
        story.refusal("argo", &config_map(&json!({"a": "2"}))),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .data.a"
    );
    let object = story.apply("argo", &config_map(&json!({"a": "1"})));
    assert_eq!(object["data"], json!({"a": "1", "b": "1"}));
}

#[test]
fn without_the_annotation_nothing_is_inherited() {
    let mut story = client_side(&json!({"a": "1"}));
    story.update("edit", |object| {
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("annotations");
    });
    assert_eq!(
        story.refusal("kubectl", &config_map(&json!({"a": "2"}))),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .data.a"
    );
}

#[test]
fn last_applied_values_yield_whatever_manager_owns_them() {
    let mut story = client_side(&json!({"a": "1", "b": "1"}));
    // An old server recorded no managers.
    let live = story.live.as_mut().unwrap();
    live["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("managedFields");
    let object = story.apply("kubectl", &config_map(&json!({"a": "2", "b": "1"})));
    assert_eq!(object["data"], json!({"a": "2", "b": "1"}));
}

#[test]
fn a_value_changed_since_is_still_a_conflict() {
    let mut story = client_side(&json!({"a": "1", "b": "1"}));
    story.update("edit", |object| object["data"]["a"] = json!("edited"));
    assert_eq!(
        story.refusal("kubectl", &config_map(&json!({"a": "2", "b": "2"}))),
        "Apply failed with 1 conflict: conflict with \"edit\" using v1: .data.a"
    );
}

#[test]
fn a_configuration_of_another_version_yields_nothing() {
    let mut story = client_side(&json!({"a": "1"}));
    let live = story.live.as_mut().unwrap();
    let metadata = live["metadata"].as_object_mut().unwrap();
    metadata.remove("managedFields");
    let text = metadata["annotations"][ANNOTATION].as_str().unwrap();
    let other = text.replace("\"v1\"", "\"v0\"");
    metadata["annotations"][ANNOTATION] = json!(other);
    assert_eq!(
        story.refusal("kubectl", &config_map(&json!({"a": "2"}))),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a"
    );
}

#[test]
fn a_configuration_too_big_for_an_annotation_drops_it() {
    let mut story = client_side(&json!({"a": "1"}));
    let config = config_map(&json!({"a": "x".repeat(256 * 1024)}));
    let object = story.apply("kubectl", &config);
    assert!(object["metadata"]["annotations"].get(ANNOTATION).is_none());
}
