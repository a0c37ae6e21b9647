//! The errors of a refused apply.

use super::*;

#[test]
fn conflicts_read_as_a_real_server_tells_them() {
    let mut story = Story::of(config_map_schema());
    story.update("m", |object| object["data"] = json!({"n": "1", "a": "1"}));
    let config = config_map(&json!({"n": "2"}));
    assert_eq!(
        story.refusal("alice", &config),
        "Apply failed with 1 conflict: conflict with \"m\" using v1: .data.n"
    );
    let config = config_map(&json!({"n": "2", "a": "2"}));
    assert_eq!(
        story.refusal("alice", &config),
        "Apply failed with 2 conflicts: conflicts with \"m\" using v1:\n- .data.a\n- .data.n"
    );
    story.apply("b", &config_map(&json!({"x": "1"})));
    let config = config_map(&json!({"n": "2", "a": "2", "x": "2"}));
    assert_eq!(
        story.refusal("alice", &config),
        "Apply failed with 3 conflicts: conflicts with \"b\":\n- .data.x\n\
         conflicts with \"m\" using v1:\n- .data.a\n- .data.n"
    );
}

#[test]
fn a_conflict_is_answered_with_409_and_a_cause_for_each_field() {
    let mut story = Story::of(deployment_schema());
    story.live = Some(deployment(&json!({"replicas": 1, "paused": true})));
    let through_scale = Stamp {
        subresource: Some("scale"),
        scope: EndpointScope::Other,
        ..stamp("hpa", T1)
    };
    let mut live = deployment(&json!({"replicas": 1, "paused": true}));
    track_update(story.schema, None, &mut live, &through_scale);
    story.live = Some(live);
    let config = deployment(&json!({"replicas": 2}));
    let refused: ApiError = story.try_apply("alice", &config, false).unwrap_err().into();
    assert_eq!(
        refused.to_value(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "code": 409, "reason": "Conflict",
            "message": "Apply failed with 1 conflict: conflict with \"hpa\" with subresource \
                \"scale\" using v1: .spec.replicas",
            "details": {"causes": [{"reason": "FieldManagerConflict", "field": ".spec.replicas",
                "message": "conflict with \"hpa\" with subresource \"scale\" using v1"}]}})
    );
}

#[test]
fn nested_fields_conflict_by_their_own_path() {
    let mut story = Story::of(deployment_schema());
    let container = |image: &str| pod(&json!({"containers": [{"name": "x", "image": image}]}));
    story.apply("alice", &container("1"));
    assert_eq!(
        story.refusal("bob", &container("2")),
        "Apply failed with 1 conflict: conflict with \"alice\": \
         .spec.template.spec.containers[name=\"x\"].image"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_configuration_that_does_not_fit_is_refused_with_its_paths() {
    let containers = |list: Value| pod(&json!({"containers": list}));
    let twice = json!([{"name": "a"}, {"name": "a"}]);
    let mut finalizers = deployment(&json!({}));
    finalizers["metadata"]["finalizers"] = json!(["x", "x"]);
    for (config, why) in [
        (
            containers(twice),
            ".spec.template.spec.containers: duplicate entries for key [name=\"a\"]",
        ),
        (
            finalizers,
            ".metadata.finalizers: duplicate entries for key [=\"x\"]",
        ),
        (
            deployment(&json!({"bogus": 1})),
            ".spec.bogus: field not declared in schema",
        ),
        (
            pod(&json!({"tolerations": [{"bogus": 1}]})),
            ".spec.template.spec.tolerations[0].bogus: field not declared in schema",
        ),
        (
            deployment(&json!({"replicas": "3"})),
            ".spec.replicas: expected numeric (int or float), got string",
        ),
        (
            deployment(&json!({"replicas": {"a": 1}})),
            ".spec.replicas: expected numeric (int or float), got map[string]interface {}",
        ),
        (deployment(&json!([])), ".spec: expected map, got &{[]}"),
        (
            pod(&json!(["x", 1])),
            ".spec.template.spec: expected map, got &{[x 1]}",
        ),
        (
            containers(json!({"a": 1})),
            ".spec.template.spec.containers: expected list, got &{map[a:1]}",
        ),
        (
            containers(json!(["x"])),
            ".spec.template.spec.containers: element 0: associative list with keys may not have non-map elements",
        ),
        (
            containers(json!([{"name": "a", "image": 5}])),
            ".spec.template.spec.containers[name=\"a\"].image: expected string, got &value.valueUnstructured{Value:5}",
        ),
        (
            containers(json!([{"name": "a", "image": {}}])),
            ".spec.template.spec.containers[name=\"a\"].image: expected string, got &value.valueUnstructured{Value:map[string]interface {}{}}",
        ),
        (
            containers(json!([{"image": "x"}, {"image": "y"}])),
            ".spec.template.spec.containers: duplicate entries for key [name=\"\"]",
        ),
        (
            deployment(&json!({"a": 1, "b": 1})),
            ".spec.a: field not declared in schema",
        ),
        (
            deployment(&json!({"paused": "y", "replicas": "x"})),
            "errors:\n  .spec.paused: expected boolean, got &{y}\n  .spec.replicas: expected numeric (int or float), got string",
        ),
    ] {
        let mut story = Story::of(deployment_schema());
        let refused = story.try_apply("alice", &config, false).unwrap_err();
        let expected =
            format!("failed to create typed patch object (/d; /v1, Kind=Deployment): {why}");
        assert_eq!(refused.to_string(), expected);
        assert_eq!(ApiError::from(refused).code, 500);
    }
}

#[test]
fn a_number_or_text_may_be_anything_until_the_object_is_judged() {
    let mut set = Schemas::default();
    let either = set.add(Node {
        ty: Type::IntOrString,
        ..Node::default()
    });
    let root = set.add(Node {
        ty: Type::Object,
        properties: [("amount".into(), either)].into(),
        ..Node::default()
    });
    for amount in [json!(1), json!("10%"), json!(["a"]), json!({"a": 1})] {
        let config = json!({"amount": amount});
        assert_eq!(check::check(set.at(root), &config), []);
    }
}

#[test]
fn managed_fields_and_foreign_versions_are_refused() {
    for entries in [json!([]), json!([{}])] {
        let mut config = config_map(&json!({}));
        config["metadata"]["managedFields"] = entries;
        let refused = Story::of(config_map_schema())
            .try_apply("alice", &config, false)
            .unwrap_err();
        assert_eq!(ApiError::from(refused.clone()).code, 400);
        assert_eq!(refused, Error::ManagedFields);
    }
    let mut config = config_map(&json!({}));
    config["apiVersion"] = json!("v2");
    let refused = Story::of(config_map_schema())
        .try_apply("alice", &config, false)
        .unwrap_err();
    assert_eq!(
        ApiError::from(refused).message,
        "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1"
    );
}

#[test]
fn broken_stored_entries_are_reported_and_not_overwritten() {
    let mut live = config_map(&json!({"a": "1"}));
    live["metadata"]["managedFields"] = json!([{"manager": "x", "operation": "Odd"}]);
    let config = config_map(&json!({"a": "1"}));
    let refused = apply(
        config_map_schema(),
        Some(&live),
        &config,
        &stamp("a", T1),
        true,
    );
    assert_eq!(refused.unwrap_err(), Error::Stored(InvalidEntry::Operation));
}
