use super::*;

fn spec(value: &Value) -> Value {
    json!({"spec": value})
}

#[test]
fn a_rule_speaks_with_its_message_reason_and_field() {
    for (rule, expected) in [
        (
            json!({"rule": "self.size < 3"}),
            "spec: Invalid value: failed rule: self.size < 3",
        ),
        (
            json!({"rule": "self.size < 3", "message": "too big"}),
            "spec: Invalid value: too big",
        ),
        (
            json!({"rule": "self.size < 3", "messageExpression": "'is ' + string(self.size)"}),
            "spec: Invalid value: is 3",
        ),
        (
            json!({"rule": "self.size < 3", "messageExpression": "self.other", "message": "plain"}),
            "spec: Invalid value: plain",
        ),
        (
            json!({"rule": "self.size < 3", "message": "m", "reason": "FieldValueForbidden"}),
            "spec: Forbidden: m",
        ),
        (
            json!({"rule": "self.size < 3", "message": "m", "fieldPath": ".inner.deep"}),
            "spec.inner.deep: Invalid value: m",
        ),
        (
            json!({"rule": "self.size < 3", "message": "m", "fieldPath": ".labels['a.b']"}),
            "spec.labels[a.b]: Invalid value: m",
        ),
    ] {
        let schema = with_rules(&json!([rule]));
        assert_eq!(
            outcome(&schema, &spec(&json!({"size": 3})), None),
            [expected]
        );
    }
}

#[test]
fn rules_run_where_they_stand() {
    let mut schema = wide();
    let spec_properties = &mut schema["properties"]["spec"]["properties"];
    spec_properties["size"]["x-kubernetes-validations"] =
        json!([{"rule": "self > 2", "message": "small"}]);
    spec_properties["list"]["items"]["x-kubernetes-validations"] =
        json!([{"rule": "self.n != 0", "message": "zero"}]);
    spec_properties["labels"]["additionalProperties"]["x-kubernetes-validations"] =
        json!([{"rule": "self != ''", "message": "empty"}]);
    schema["x-kubernetes-validations"] =
        json!([{"rule": "self.metadata.name.startsWith('x')", "message": "name"}]);
    let object = json!({"metadata": {"name": "y"}, "spec": {"size": 1,
        "list": [{"n": 1}, {"n": 0}], "labels": {"a": ""}}});
    let mut found = outcome(&schema, &object, None);
    found.sort();
    assert_eq!(
        found,
        [
            "<nil>: Invalid value: name",
            "spec.labels[a]: Invalid value: \"\": empty",
            "spec.list[1]: Invalid value: zero",
            "spec.size: Invalid value: 1: small",
        ]
    );
}

#[test]
fn transition_rules_run_only_when_there_is_an_old_value() {
    let schema = with_rules(&json!([{"rule": "self.size >= oldSelf.size", "message": "shrinks"}]));
    let (small, big) = (spec(&json!({"size": 1})), spec(&json!({"size": 2})));
    assert!(outcome(&schema, &small, None).is_empty());
    assert!(outcome(&schema, &big, Some(&small)).is_empty());
    assert_eq!(
        outcome(&schema, &small, Some(&big)),
        ["spec: Invalid value: shrinks"]
    );
    assert!(outcome(&schema, &small, Some(&json!({}))).is_empty());
}

#[test]
fn an_optional_old_value_lets_a_rule_run_on_create() {
    let schema = with_rules(&json!([{
        "rule": "oldSelf.hasValue() || self.size == 0", "message": "starts at zero", "optionalOldSelf": true}]));
    let one = spec(&json!({"size": 1}));
    assert_eq!(
        outcome(&schema, &one, None),
        ["spec: Invalid value: starts at zero"]
    );
    assert!(outcome(&schema, &one, Some(&one)).is_empty());
}

#[test]
fn entries_of_map_lists_meet_their_old_selves() {
    let mut schema = wide();
    schema["properties"]["spec"]["properties"]["keyed"]["items"]["x-kubernetes-validations"] =
        json!([{"rule": "self.n >= oldSelf.n", "message": "shrinks"}]);
    let old = spec(&json!({"keyed": [{"key": "a", "n": 5}, {"key": "b", "n": 1}]}));
    let new =
        spec(&json!({"keyed": [{"key": "b", "n": 2}, {"key": "a", "n": 4}, {"key": "c", "n": 0}]}));
    assert_eq!(
        outcome(&schema, &new, Some(&old)),
        ["spec.keyed[1]: Invalid value: shrinks"]
    );
}

#[test]
fn old_values_cannot_be_asked_for_where_they_cannot_be_found() {
    let mut schema = wide();
    schema["properties"]["spec"]["properties"]["list"]["items"]["x-kubernetes-validations"] =
        json!([{"rule": "self.n >= oldSelf.n"}]);
    let (.., problems) = compiled(&schema);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with(
        "properties[spec].properties[list].items.x-kubernetes-validations[0].rule: Invalid value"
    ), "{problems:?}");
    assert!(problems[0].contains("uncorrelatable"));
}

#[test]
fn a_rule_that_fails_on_an_unchanged_value_is_tolerated_on_update() {
    let mut schema = wide();
    schema["properties"]["spec"]["properties"]["inner"]["x-kubernetes-validations"] =
        json!([{"rule": "self.deep.x > 9", "message": "low"}]);
    let old = spec(&json!({"size": 1, "inner": {"deep": {"x": 1}}}));
    let touched = spec(&json!({"size": 2, "inner": {"deep": {"x": 1}}}));
    let changed = spec(&json!({"size": 2, "inner": {"deep": {"x": 2}}}));
    assert!(outcome(&schema, &touched, Some(&old)).is_empty());
    assert_eq!(outcome(&schema, &changed, Some(&old)).len(), 1);
    assert_eq!(outcome(&schema, &touched, None).len(), 1);
}

#[test]
fn the_parts_of_a_rule_are_reviewed() {
    for (rule, path, reason) in [
        (json!({"rule": ""}), "rule", "rule is not specified"),
        (
            json!({"rule": "true", "message": " "}),
            "message",
            "non-empty",
        ),
        (
            json!({"rule": "true", "message": "a\nb"}),
            "message",
            "line breaks",
        ),
        (
            json!({"rule": "true\n|| false"}),
            "message",
            "must be specified if rule contains line breaks",
        ),
        (
            json!({"rule": "true", "reason": "Whatever"}),
            "reason",
            "supported values: \"FieldValueDuplicate\"",
        ),
        (
            json!({"rule": "true", "fieldPath": ".bogus"}),
            "fieldPath",
            "must be a valid path",
        ),
        (
            json!({"rule": "true", "fieldPath": "."}),
            "fieldPath",
            "must be a valid path",
        ),
        (
            json!({"rule": "true", "messageExpression": "1"}),
            "messageExpression",
            "must evaluate to a string",
        ),
        (
            json!({"rule": "true", "optionalOldSelf": true}),
            "optionalOldSelf",
            "oldSelf is not used",
        ),
    ] {
        let (.., problems) = compiled(&with_rules(&json!([rule])));
        assert_eq!(problems.len(), 1, "{rule} {problems:?}");
        let start = format!("properties[spec].x-kubernetes-validations[0].{path}: ");
        assert!(problems[0].starts_with(&start), "{problems:?}");
        assert!(problems[0].contains(reason), "{problems:?}");
    }
}

#[test]
fn a_value_of_another_type_than_declared_is_not_looked_at() {
    const MAP: &str = "a map for the provided schema with type=object";
    const LIST: &str = "an array for the provided schema with type=array";
    for (rule, value, expected) in [
        ("self.size < 3", json!("text"), MAP),
        ("self.size < 3", json!({"size": "x"}), "int, got string"),
        ("self.size < 3", json!({"size": 1.5}), "int, got float64"),
        ("self.name == ''", json!({"name": 7}), "string, got int64"),
        (
            "self.ratio < 3.0",
            json!({"ratio": true}),
            "float, got bool",
        ),
        ("self.on", json!({"on": [1]}), "bool, got []interface {}"),
        ("has(self.names)", json!({"names": {}}), LIST),
        ("self.labels.size() < 1", json!({"labels": "x"}), MAP),
    ] {
        let told = outcome(&with_rules(&json!([{"rule": rule}])), &spec(&value), None);
        let expected = format!(
            "spec: Invalid value: \"object\": invalid data, expected {expected} evaluating rule: {rule}"
        );
        assert_eq!(told, [expected]);
    }
}
