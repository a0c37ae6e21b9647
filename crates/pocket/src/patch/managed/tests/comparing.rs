//! What changed between two objects.

use super::*;

#[test]
fn comparison_names_what_was_added_modified_and_removed() {
    let old = json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["f/a", "f/b"]},
        "spec": {"replicas": 1, "paused": true, "template": {"spec": {"containers": [
            {"name": "keep", "image": "1"}, {"name": "gone", "image": "1"}]}}}});
    let new = json!({"metadata": {"labels": {"a": "2", "b": "1"}, "annotations": {"x": "y"},
            "finalizers": ["f/c", "f/a"]},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [
            {"name": "new"}, {"name": "keep", "image": "2", "args": ["a"]}]}}}});
    let Comparison {
        added,
        modified,
        removed,
    } = compare(deployment_schema(), Some(&old), &new);
    let containers = |below: Value| json!({"f:template": {"f:spec": {"f:containers": below}}});
    assert_eq!(
        added.into_fields_v1(),
        json!({"f:metadata": {"f:labels": {"f:b": {}}, "f:annotations": {".": {}, "f:x": {}},
                "f:finalizers": {"v:\"f/c\"": {}}},
            "f:spec": containers(json!({"k:{\"name\":\"new\"}": {".": {}, "f:name": {}},
                "k:{\"name\":\"keep\"}": {"f:args": {}}}))})
    );
    assert_eq!(
        modified.into_fields_v1(),
        json!({"f:metadata": {"f:labels": {"f:a": {}}},
            "f:spec": containers(json!({"k:{\"name\":\"keep\"}": {"f:image": {}}}))})
    );
    let mut spec = containers(json!({"k:{\"name\":\"gone\"}":
        {".": {}, "f:image": {}, "f:name": {}}}));
    spec["f:paused"] = json!({});
    assert_eq!(
        removed.into_fields_v1(),
        json!({"f:metadata": {"f:finalizers": {"v:\"f/b\"": {}}}, "f:spec": spec})
    );
}

#[test]
fn items_that_share_a_key_compare_as_one() {
    let env = |values: &[&str]| {
        let env: Vec<_> = values
            .iter()
            .map(|v| json!({"name": "A", "value": v}))
            .collect();
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "env": env}]}}}})
    };
    let schema = deployment_schema();
    let same = compare(schema, Some(&env(&["1", "2"])), &env(&["1", "2"]));
    assert!(same.is_empty());
    let changed = compare(schema, Some(&env(&["1", "2"])), &env(&["1", "3"]));
    let below = json!({"k:{\"name\":\"A\"}": {}});
    assert_eq!(
        changed.modified.into_fields_v1(),
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers":
            {"k:{\"name\":\"c\"}": {"f:env": below}}}}}})
    );
    assert!(changed.added.is_empty() && changed.removed.is_empty());
}

#[test]
fn a_deduced_value_that_changes_kind_is_modified_with_its_parts() {
    let mut set = Schemas::default();
    let id = set.add(Node::default());
    let (one, many) = (json!({"a": 1}), json!({"a": {"b": 1}}));
    let grown = compare(set.at(id), Some(&one), &many);
    assert_eq!(grown.modified.into_fields_v1(), json!({"f:a": {}}));
    assert_eq!(grown.added.into_fields_v1(), json!({"f:a": {"f:b": {}}}));
    let shrunk = compare(set.at(id), Some(&many), &one);
    assert_eq!(shrunk.modified.into_fields_v1(), json!({"f:a": {}}));
    assert_eq!(shrunk.removed.into_fields_v1(), json!({"f:a": {"f:b": {}}}));
}

#[test]
fn null_is_an_empty_container_of_whatever_comes() {
    let labels = |labels: Value| json!({"metadata": {"labels": labels}});
    let (null, set) = (labels(Value::Null), labels(json!({"a": "1"})));
    let filled = compare(deployment_schema(), Some(&null), &set);
    let only = json!({"f:metadata": {"f:labels": {"f:a": {}}}});
    assert_eq!(filled.added.into_fields_v1(), only);
    assert!(filled.modified.is_empty() && filled.removed.is_empty());
    let emptied = compare(deployment_schema(), Some(&set), &null);
    assert_eq!(emptied.removed.into_fields_v1(), only);
    assert!(emptied.modified.is_empty() && emptied.added.is_empty());
}

#[test]
fn an_item_that_gets_or_loses_a_double_is_gone_and_new() {
    let status = |items: &[&str]| {
        let conditions: Vec<_> = items
            .iter()
            .map(|status| json!({"type": "Ready", "status": status}))
            .collect();
        json!({"status": {"conditions": conditions}})
    };
    let below = |set: FieldSet| {
        let fields = set.into_fields_v1();
        fields["f:status"]["f:conditions"]["k:{\"type\":\"Ready\"}"].clone()
    };
    let whole = json!({".": {}, "f:status": {}, "f:type": {}});
    let (itself, nothing) = (json!({}), Value::Null);
    for (old, new, added, modified, removed) in [
        (&["a"][..], &["a", "a"][..], &itself, &nothing, &whole),
        (&["a", "a"], &["a"], &whole, &nothing, &itself),
        (&["a", "a"], &["a", "b"], &nothing, &itself, &nothing),
        (&["a", "a"], &["a", "a"], &nothing, &nothing, &nothing),
    ] {
        let found = compare(deployment_schema(), Some(&status(old)), &status(new));
        assert_eq!(below(found.added), *added, "{old:?} {new:?}");
        assert_eq!(below(found.modified), *modified, "{old:?} {new:?}");
        assert_eq!(below(found.removed), *removed, "{old:?} {new:?}");
    }
}
