use serde_json::json;

use super::*;

#[expect(
    clippy::needless_pass_by_value,
    reason = "cases read better with the literal in place"
)]
fn errors(metadata: Value, rule: NameRule, namespaced: bool) -> Vec<String> {
    let mut problems = Problems::new();
    let object = json!({ "metadata": metadata });
    validate_metadata(&object, rule, namespaced, &mut problems);
    problems.iter().map(ToString::to_string).collect()
}

fn named_errors(mut metadata: Value) -> Vec<String> {
    metadata["name"] = json!("x");
    errors(metadata, NameRule::Subdomain, false)
}

fn change_errors(new: &Value, old: &Value) -> Vec<String> {
    let mut problems = Problems::new();
    let (new, old) = (json!({ "metadata": new }), json!({ "metadata": old }));
    validate_metadata_update(&new, &old, &mut problems);
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_name_is_required_and_follows_its_rule() {
    let required = ["metadata.name: Required value: name or generateName is required"];
    assert_eq!(errors(json!({}), NameRule::Subdomain, false), required);
    for (rule, name, good) in [
        (NameRule::Subdomain, "a.b", true),
        (NameRule::Label, "a.b", false),
        (NameRule::Rfc1035, "1a", false),
        (NameRule::PathSegment, "system:node", true),
        (NameRule::PathSegment, "a/b", false),
    ] {
        let errors = errors(json!({"name": name}), rule, false);
        assert_eq!(errors.is_empty(), good, "{rule:?} {name}: {errors:?}");
        assert!(
            errors
                .iter()
                .all(|text| text.starts_with("metadata.name: Invalid value"))
        );
    }
}

#[test]
fn a_generated_name_may_end_with_a_dash_before_its_suffix() {
    let errors = |prefix: &str| errors(json!({"generateName": prefix}), NameRule::Label, false);
    assert_eq!(errors("web-"), [""; 0]);
    assert!(errors("Web-")[0].starts_with("metadata.generateName: Invalid value: \"Web-\""));
    assert!(errors("-")[0].starts_with("metadata.generateName: Invalid value: \"-\""));
}

#[test]
fn only_namespaced_kinds_have_a_namespace() {
    let named = json!({"name": "x"});
    let placed = json!({"name": "x", "namespace": "n"});
    assert_eq!(
        errors(named.clone(), NameRule::Subdomain, true),
        ["metadata.namespace: Required value"]
    );
    assert_eq!(errors(placed.clone(), NameRule::Subdomain, true), [""; 0]);
    assert_eq!(
        errors(placed, NameRule::Subdomain, false),
        ["metadata.namespace: Forbidden: not allowed on this type"]
    );
}

#[test]
fn labels_have_qualified_keys_and_short_values() {
    let errors = named_errors(json!({"labels": {"a/b/c": "v", "ok": "no spaces"}}));
    assert_eq!(
        errors,
        [
            "metadata.labels: Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
            "metadata.labels: Invalid value: \"no spaces\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ]
    );
}

#[test]
fn annotations_hold_anything_up_to_256_kib() {
    let exact = "v".repeat(256 * 1024 - 1);
    let annotations = |value: &str| json!({"annotations": {"k": value}});
    assert_eq!(named_errors(annotations(&exact)), [""; 0]);
    assert_eq!(
        named_errors(annotations(&format!("{exact}v"))),
        ["metadata.annotations: Too long: may not be more than 262144 bytes"]
    );
    assert_eq!(
        named_errors(json!({"annotations": {"Example.COM/k": "v"}})),
        [""; 0]
    );
}

#[test]
fn finalizers_have_qualified_names() {
    for (finalizer, good) in [("example.com/hold", true), ("hold", true), ("a b/c", false)] {
        let errors = named_errors(json!({"finalizers": [finalizer]}));
        assert_eq!(errors.is_empty(), good, "{finalizer}: {errors:?}");
    }
    let both = named_errors(json!({"finalizers": ["orphan", "foregroundDeletion"]}));
    assert!(both[0].contains("cannot be both set"), "{both:?}");
}

#[test]
fn a_finalizer_without_a_domain_is_refused_or_warned_of() {
    let standard = json!({"metadata": {"finalizers": ["kubernetes", "orphan", "a.com/b"]}});
    let mine = json!({"metadata": {"finalizers": ["orphan", "hold"]}});
    let mut problems = Problems::new();
    validate_finalizer_domains(&standard, &mut problems);
    assert!(problems.is_empty(), "{problems}");
    validate_finalizer_domains(&mine, &mut problems);
    assert!(
        problems
            .to_string()
            .starts_with("metadata.finalizers[1]: Invalid value: \"hold\""),
        "{problems}"
    );
    assert!(finalizer_warnings(&standard).is_empty());
    assert_eq!(finalizer_warnings(&mine).len(), 1);
}

#[test]
fn owners_are_whole_and_one_controls() {
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": "u", "controller": true});
    assert_eq!(
        named_errors(json!({"ownerReferences": [owner("a")]})),
        [""; 0]
    );
    let two = named_errors(json!({"ownerReferences": [owner("a"), owner("b")]}));
    assert!(
        two[0].contains("Only one reference can have Controller set to true"),
        "{two:?}"
    );
    let bare = named_errors(json!({"ownerReferences": [{}]}));
    assert_eq!(bare.len(), 4, "{bare:?}");
    let mut event = owner("a");
    event["kind"] = json!("Event");
    let event = named_errors(json!({"ownerReferences": [event]}));
    assert!(
        event[0].contains("disallowed from being an owner"),
        "{event:?}"
    );
}

#[test]
fn identity_does_not_change() {
    let old = json!({"name": "x", "uid": "u", "creationTimestamp": "t", "generation": 2});
    assert_eq!(change_errors(&old, &old), [""; 0]);
    for (field, value) in [
        ("uid", json!("v")),
        ("creationTimestamp", json!("later")),
        ("name", json!("y")),
        ("deletionTimestamp", json!("t")),
    ] {
        let mut new = old.clone();
        new[field] = value.clone();
        let text = format!("metadata.{field}: Invalid value: {value}: field is immutable");
        assert_eq!(change_errors(&new, &old), [text]);
    }
    let mut new = old.clone();
    new["generation"] = json!(1);
    assert_eq!(
        change_errors(&new, &old),
        ["metadata.generation: Invalid value: 1: must not be decremented"]
    );
}

#[test]
fn no_finalizer_is_added_while_deleting() {
    let old = json!({"deletionTimestamp": "t", "finalizers": ["a/b"]});
    let mut new = old.clone();
    new["finalizers"] = json!(["a/b", "c/d", "c/d"]);
    assert_eq!(
        change_errors(&new, &old),
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"c/d\"}"
        ]
    );
    new["finalizers"] = json!([]);
    assert_eq!(change_errors(&new, &old), [""; 0]);
}

#[test]
fn a_whole_object_inside_of_another_is_judged_as_any_other() {
    for (object, expected) in [
        (json!({"apiVersion": "v1", "kind": "ConfigMap"}), vec![]),
        (
            json!({"apiVersion": "a/v1", "kind": "A", "metadata": {}}),
            vec![],
        ),
        (json!({"metadata": null}), vec![]),
        (
            json!({"apiVersion": "a/b/c", "kind": "a b"}),
            vec!["t.apiVersion", "t.kind"],
        ),
        (
            json!({"metadata": {"name": "UPPER", "namespace": "x"}}),
            vec![],
        ),
        (json!({"metadata": {"name": ".."}}), vec!["t.metadata.name"]),
        (
            json!({"metadata": {"namespace": "-x", "labels": {"a": "a b"}}}),
            vec!["t.metadata.namespace", "t.metadata.labels"],
        ),
    ] {
        let mut problems = Problems::new();
        validate_embedded(&object, "t", &mut problems);
        let errors: Vec<_> = problems
            .iter()
            .map(|problem| problem.path.as_str())
            .collect();
        assert_eq!(errors, expected, "{object}");
    }
}
