use serde_json::json;

use super::*;

#[test]
fn a_definition_is_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Definition>();
}

#[test]
fn versions_are_preferred_by_maturity_and_age() {
    let mut names = [
        "v1alpha1", "foo", "v2", "v1beta1", "v10", "v1beta2", "bar", "v1",
    ];
    names.sort_by(|a, b| prefer(a, b));
    assert_eq!(
        names,
        [
            "v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo"
        ]
    );
}

#[test]
fn a_definition_is_read_whole() {
    let definition = Definition::read(&json!({"spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["wd"]},
        "versions": [{"name": "v1", "served": true, "storage": true, "deprecated": true,
            "schema": {"openAPIV3Schema": {"type": "object"}},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            "additionalPrinterColumns": [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
            "selectableFields": [{"jsonPath": ".spec.color"}]}]}}));
    let version = definition.storage().unwrap();
    assert!(version.has_status && version.served);
    assert_eq!(
        version.scale.as_ref().unwrap().spec_replicas.source(),
        ".spec.replicas"
    );
    assert_eq!(version.printer_columns[0].ty, "date");
    assert_eq!(
        version.selectable_fields[0].fields(),
        Some(vec!["spec", "color"])
    );
    assert_eq!(definition.names.short_names, ["wd"]);
    assert_eq!(
        definition.deprecation(version).as_deref(),
        Some("example.com/v1 Widget is deprecated")
    );
    let mut object = json!({"apiVersion": "example.com/v1"});
    definition.convert(&mut object, "v2");
    assert_eq!(object["apiVersion"], "example.com/v2");
}

#[test]
fn rules_wait_for_an_object_they_can_read() {
    let definition = Definition::read(&json!({"spec": {"versions": [{"name": "v1",
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}, "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}},
            "x-kubernetes-validations": [{"rule": "self.n < 5", "message": "big"}]}}}]}}));
    let check = |object: &Value| {
        let mut problems = Problems::new();
        definition.versions[0].validate(object, None, &mut problems);
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(check(&json!({"n": 9})), ["<nil>: Invalid value: big"]);
    let small = "n: Invalid value: 0: n in body should be greater than or equal to 1";
    assert_eq!(check(&json!({"n": 0})), [small]);
    assert_eq!(
        check(&json!({"n": 9, "set": ["a", "a"]})),
        [
            "set[1]: Duplicate value: \"a\"",
            "<nil>: Invalid value: big"
        ]
    );
    assert_eq!(
        check(&json!({"n": "x"})),
        [
            "n: Invalid value: \"string\": n in body must be of type integer: \"string\"",
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ]
    );
}

#[test]
fn what_a_scale_shows_is_of_its_types() {
    let definition = Definition::read(&json!({"spec": {"versions": [{"name": "v1",
        "subresources": {"scale": {"specReplicasPath": ".spec.pool.size",
            "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}));
    let map = "expected map[string]interface{}";
    for (object, expected) in [
        (json!({}), vec![]),
        (json!({"spec": null, "status": null}), vec![]),
        (
            json!({"spec": {"pool": {"size": null}}}),
            vec![
                ".spec.pool.size: Invalid value: 0: .spec.pool.size accessor error: <nil> is of the type <nil>, expected int64".to_owned(),
            ],
        ),
        (
            json!({"spec": "x"}),
            vec![format!(
                ".spec.pool.size: Invalid value: 0: .spec.pool accessor error: x is of the type string, {map}"
            )],
        ),
        (
            json!({"status": []}),
            vec![
                format!(
                    ".status.replicas: Invalid value: 0: .status.replicas accessor error: [] is of the type []interface {{}}, {map}"
                ),
                format!(
                    ".status.selector: Invalid value: \"\": .status.selector accessor error: [] is of the type []interface {{}}, {map}"
                ),
            ],
        ),
        (
            json!({"status": {"replicas": -1, "selector": 7}}),
            vec![
                ".status.replicas: Invalid value: -1: should be a non-negative integer".to_owned(),
                ".status.selector: Invalid value: \"\": .status.selector accessor error: 7 is of the type int64, expected string".to_owned(),
            ],
        ),
    ] {
        let mut problems = Problems::new();
        definition.versions[0].validate(&object, None, &mut problems);
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(told, expected, "{object}");
    }
}

#[test]
fn a_whole_object_inside_has_metadata_even_if_it_is_said_to_have_none() {
    let definition = Definition::read(&json!({"spec": {"versions": [{"name": "v1",
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"t": {"type": "object",
            "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"n": {"type": "string"}}}}}}}]}}));
    let mut object = json!({"t": {"metadata": null, "n": null}});
    assert_eq!(definition.versions[0].take_in(&mut object), Ok(Vec::new()));
    assert_eq!(object, json!({"t": {"metadata": {}}}));
    let refused = definition.versions[0].take_in(&mut json!({"t": {"kind": null}}));
    let why = "t.kind: Invalid value: null: must be a string";
    assert_eq!(refused, Err(why.to_owned()));
}
