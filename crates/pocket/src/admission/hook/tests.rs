use serde_json::json;

use super::*;
use crate::admission::{GroupVersionResource, Operation};

const CONFIG_MAPS: GroupVersionResource<'static> = GroupVersionResource {
    group: "",
    version: "v1",
    plural: "configmaps",
};

fn ask<'a>(
    places: &'a [GroupVersionResource<'a>],
    subresource: &'a str,
    namespaced: bool,
) -> WriteAttributes<'a> {
    WriteAttributes {
        operation: Operation::Create,
        places,
        subresource,
        namespaced,
        namespace_labels: None,
        object: None,
        old: None,
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "cases read better with the literal in place"
)]
fn hook(rule: Value) -> Webhook {
    Webhook::read(&json!({"name": "a.b.c", "rules": [rule]}))
}

#[test]
fn rules_name_groups_versions_resources_operations_and_scope() {
    let rule = |changes: Value| {
        let mut rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]});
        for (key, value) in changes.as_object().unwrap() {
            rule[key] = value.clone();
        }
        hook(rule)
    };
    for (changes, subresource, wanted) in [
        (json!({}), "", true),
        (json!({}), "status", false),
        (json!({"operations": ["UPDATE", "DELETE"]}), "", false),
        (json!({"operations": ["*"]}), "", true),
        (json!({"apiGroups": ["apps"]}), "", false),
        (json!({"apiGroups": ["*"]}), "", true),
        (json!({"apiVersions": ["v2"]}), "", false),
        (json!({"apiVersions": ["*"]}), "", true),
        (json!({"resources": ["*"]}), "", true),
        (json!({"resources": ["*"]}), "status", false),
        (json!({"resources": ["*/*"]}), "", true),
        (json!({"resources": ["*/*"]}), "status", true),
        (json!({"resources": ["configmaps/*"]}), "", true),
        (json!({"resources": ["configmaps/*"]}), "scale", true),
        (json!({"resources": ["*/scale"]}), "scale", true),
        (json!({"resources": ["*/scale"]}), "", false),
        (json!({"resources": ["pods"]}), "", false),
        (json!({"scope": "Cluster"}), "", false),
        (json!({"scope": "Namespaced"}), "", true),
    ] {
        let found = rule(changes.clone()).wants(&ask(&[CONFIG_MAPS], subresource, true));
        assert_eq!(found.is_some(), wanted, "{changes} {subresource}");
    }
}

#[test]
fn another_version_counts_unless_the_match_is_exact() {
    let place = |version| GroupVersionResource {
        group: "t.example",
        version,
        plural: "tides",
    };
    let places = [place("v1beta1"), place("v2"), place("v1")];
    let rules = json!([{"apiGroups": ["t.example"], "apiVersions": ["v1"], "resources": ["tides"], "operations": ["*"]}]);
    let of = |policy: &str| Webhook::read(&json!({"rules": rules, "matchPolicy": policy}));
    assert_eq!(of("Equivalent").wants(&ask(&places, "", true)), Some(2));
    assert_eq!(of("Exact").wants(&ask(&places, "", true)), None);
}

#[test]
fn selectors_look_at_the_namespace_and_at_both_states() {
    let everything =
        json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]});
    let hook = Webhook::read(&json!({
        "rules": [everything],
        "namespaceSelector": {"matchLabels": {"team": "tide"}},
        "objectSelector": {"matchLabels": {"x": "1"}},
    }));
    let (ours, theirs) = (json!({"team": "tide"}), json!({"team": "other"}));
    let (marked, plain) = (
        json!({"metadata": {"labels": {"x": "1"}}}),
        json!({"metadata": {}}),
    );
    for (home, object, old, wanted) in [
        (Some(&ours), Some(&marked), None, true),
        (Some(&theirs), Some(&marked), None, false),
        (None, Some(&marked), None, true),
        (Some(&ours), Some(&plain), None, false),
        (Some(&ours), Some(&plain), Some(&marked), true),
        (Some(&ours), None, Some(&marked), true),
        (Some(&Value::Null), Some(&marked), None, false),
    ] {
        let ask = WriteAttributes {
            namespace_labels: home,
            object,
            old,
            ..ask(&[CONFIG_MAPS], "", true)
        };
        assert_eq!(
            hook.wants(&ask).is_some(),
            wanted,
            "{home:?} {object:?} {old:?}"
        );
    }
}

#[test]
fn one_condition_that_does_not_hold_settles_it() {
    let of = |expressions: &[&str]| {
        let conditions: Vec<Value> = expressions
            .iter()
            .map(|expression| json!({"name": "n", "expression": expression}))
            .collect();
        let nothing = json!({});
        Webhook::read(&json!({"matchConditions": conditions})).conditions_hold(ConditionInput {
            request: &nothing,
            object: &nothing,
            old: &Value::Null,
        })
    };
    assert_eq!(of(&["true", "oldObject == null"]), Ok(true));
    assert_eq!(of(&["object.nope == 1", "false"]), Ok(false));
    assert_eq!(
        of(&["object.nope == 1", "object.nope2 == 1"]),
        Err("[expression 'object.nope == 1' resulted in error: no such key: nope, expression 'object.nope2 == 1' resulted in error: no such key: nope2]".into())
    );
}

#[test]
fn the_first_review_version_we_know_is_sent() {
    let of = |versions: Value| Webhook::read(&json!({"admissionReviewVersions": versions})).version;
    assert_eq!(of(json!(["v2", "v1", "v1beta1"])), ReviewVersion::V1);
    assert_eq!(of(json!(["v1beta1", "v1"])), ReviewVersion::V1Beta1);
}
