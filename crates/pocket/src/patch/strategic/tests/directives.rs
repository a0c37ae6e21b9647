//! `$patch`, `$retainKeys`, `$deleteFromPrimitiveList`, `$setElementOrder`.

use super::*;

fn names(list: &[&str]) -> Value {
    list.iter().map(|name| json!({"name": name})).collect()
}

#[test]
fn a_map_may_be_replaced_or_emptied() {
    let live = json!({"spec": {"a": 1, "b": {"c": 2}}});
    for (patch, expected) in [
        (
            json!({"$patch": "replace", "d": 3, "e": null}),
            json!({"d": 3}),
        ),
        (json!({"$patch": "delete", "d": 3}), json!({})),
        (
            json!({"b": {"$patch": "replace", "x": 1}}),
            json!({"a": 1, "b": {"x": 1}}),
        ),
        (json!({"b": {"$patch": "delete"}}), json!({"a": 1, "b": {}})),
    ] {
        let result = patched("core.v1.Pod", live.clone(), json!({"spec": patch}));
        assert_eq!(result, json!({"spec": expected}), "{patch}");
    }
}

#[test]
fn an_explicit_merge_directive_is_refused() {
    let schema = builtin().named("io.k8s.api.core.v1.Pod").unwrap();
    for (word, shown) in [(json!("merge"), "merge"), (Value::Null, "%!s(<nil>)")] {
        let patch = json!({"spec": {"$patch": word}});
        let refused = apply(schema, json!({"spec": {}}), patch).unwrap_err();
        let start = format!("unknown patch type: {shown} in map: ");
        assert!(refused.message.starts_with(&start), "{}", refused.message);
    }
}

#[test]
fn a_list_that_is_one_value_is_taken_as_it_is() {
    let live = json!({"spec": {"tolerations": [{"key": "a"}]}});
    let patch = json!({"spec": {"tolerations": [{"$patch": "delete", "key": "b"}]}});
    assert_eq!(patched("core.v1.Pod", live, patch.clone()), patch);
}

#[test]
fn deleting_what_is_not_there_makes_nothing() {
    for live in [json!({"spec": {}}), json!({"spec": {"b": 1}}), json!({})] {
        let patch = json!({"spec": {"b": {"$patch": "delete"}, "c": {"d": {"$patch": "delete"}}}});
        let expected = json!({"spec": {"c": {}}});
        assert_eq!(patched("core.v1.Pod", live, patch), expected);
    }
}

#[test]
fn the_whole_object_may_be_replaced() {
    let patch = json!({"$patch": "replace", "kind": "Pod"});
    assert_eq!(
        patched("core.v1.Pod", json!({"spec": {}}), patch),
        json!({"kind": "Pod"})
    );
}

#[test]
fn an_element_may_be_deleted_by_its_key() {
    let live = pod(&names(&["a", "b", "c"]));
    let patch =
        pod(&json!([{"name": "b", "$patch": "delete"}, {"name": "zz", "$patch": "delete"}]));
    assert_eq!(
        patched("core.v1.Pod", live, patch),
        pod(&names(&["a", "c"]))
    );
}

#[test]
fn a_list_may_be_replaced() {
    let live = pod(&names(&["a", "b"]));
    let patch = pod(&json!([{"$patch": "replace"}, {"name": "x", "image": null}]));
    assert_eq!(
        patched("core.v1.Pod", live.clone(), patch),
        pod(&names(&["x"]))
    );
    let emptied = pod(&json!([{"$patch": "replace"}]));
    assert_eq!(patched("core.v1.Pod", live, emptied), pod(&json!([])));
}

#[test]
fn directives_are_fields_like_others_where_nothing_is_live() {
    let patch = json!({"spec": {
        "$retainKeys": ["containers"],
        "containers": [{"name": "a"}, {"name": "b", "$patch": "delete"}],
    }});
    let mut expected = pod(&names(&["a"]));
    assert_eq!(
        patched("core.v1.Pod", json!({"spec": {}}), patch.clone()),
        expected
    );
    expected["spec"]["$retainKeys"] = json!(["containers"]);
    assert_eq!(patched("core.v1.Pod", json!({}), patch), expected);
}

#[test]
fn what_is_marked_is_left_out_where_nothing_is_live() {
    for word in ["merge", "replace", "delete", "x"] {
        let patch = json!({"spec": {
            "nodeSelector": {"$patch": word, "a": "b"},
            "volumes": [{"$patch": word, "name": "q"}, {"name": "r"}],
        }});
        let expected = json!({"spec": {"volumes": [{"name": "r"}]}});
        assert_eq!(patched("core.v1.Pod", json!({"spec": {}}), patch), expected);
    }
}

#[test]
fn scalars_leave_a_list() {
    let live = json!({"metadata": {"finalizers": ["a", "b", "c"]}});
    let patch = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["a", "zz"], "finalizers": ["d"],
    }});
    let expected = json!({"metadata": {"finalizers": ["d", "b", "c"]}});
    assert_eq!(patched("core.v1.Pod", live, patch.clone()), expected);
    let none = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}});
    assert_eq!(
        patched("core.v1.Pod", json!({"metadata": {}}), none),
        json!({"metadata": {}})
    );
}

#[test]
fn retained_keys_are_the_only_ones() {
    let live =
        json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let expected = json!({"spec": {"strategy": {"type": "Recreate"}}});
    assert_eq!(patched("apps.v1.Deployment", live, patch), expected);
}

#[test]
fn a_volume_may_change_its_source() {
    let live = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]}});
    let patch = json!({"spec": {"volumes": [
        {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}, "emptyDir": null},
    ]}});
    let expected = json!({"spec": {"volumes": [
        {"name": "v", "hostPath": {"path": "/x"}}, {"name": "w", "emptyDir": {}},
    ]}});
    assert_eq!(patched("core.v1.Pod", live, patch), expected);
}

#[test]
fn the_order_of_elements_may_be_set() {
    for (live, patch, order, expected) in [
        (
            vec!["a", "b", "c"],
            vec![],
            vec!["c", "b", "a"],
            vec!["c", "b", "a"],
        ),
        (
            vec!["a", "b"],
            vec!["c"],
            vec!["c", "a"],
            vec!["c", "a", "b"],
        ),
        (
            vec!["a", "s", "b"],
            vec!["c"],
            vec!["a", "b", "c"],
            vec!["a", "s", "b", "c"],
        ),
        (
            vec!["a", "s"],
            vec!["c"],
            vec!["a", "c"],
            vec!["a", "c", "s"],
        ),
        (
            vec!["s", "a"],
            vec!["n"],
            vec!["n", "a"],
            vec!["n", "s", "a"],
        ),
        (
            vec!["a", "s1", "b", "s2"],
            vec![],
            vec!["b", "a"],
            vec!["s1", "b", "a", "s2"],
        ),
        (vec![], vec!["a", "b"], vec!["a", "b"], vec!["a", "b"]),
        (vec!["a"], vec![], vec!["zz", "a"], vec!["a"]),
    ] {
        let body = |list: &[&str]| pod(&names(list));
        let patch = json!({"spec": {
            "$setElementOrder/containers": names(&order), "containers": names(&patch),
        }});
        let result = patched("core.v1.Pod", body(&live), patch.clone());
        assert_eq!(result, body(&expected), "{live:?} {patch}");
    }
}

#[test]
fn the_order_of_scalars_may_be_set() {
    let live = json!({"metadata": {"finalizers": ["a", "b", "s"]}});
    let patch = json!({"metadata": {
        "$setElementOrder/finalizers": ["c", "b"],
        "$deleteFromPrimitiveList/finalizers": ["a"],
        "finalizers": ["c"],
    }});
    let expected = json!({"metadata": {"finalizers": ["c", "b", "s"]}});
    assert_eq!(patched("core.v1.Pod", live, patch), expected);
}

#[test]
fn an_order_must_name_what_the_patch_sets_in_that_order() {
    let live = pod(&names(&["a", "b"]));
    for (order, list, shown) in [
        (vec!["a"], vec!["b"], ["[map[name:b]]", "[map[name:a]]"]),
        (
            vec!["b", "a"],
            vec!["a", "b"],
            ["[map[name:a] map[name:b]]", "[map[name:b] map[name:a]]"],
        ),
    ] {
        let patch = json!({"spec": {
            "$setElementOrder/containers": names(&order), "containers": names(&list),
        }});
        let [sent, order] = shown;
        let expected = format!(
            "The order in patch list:\n{sent}\n doesn't match $setElementOrder list:\n{order}\n"
        );
        let told = refusal("core.v1.Pod", live.clone(), patch);
        assert_eq!(told, (500, expected));
    }
}

#[test]
fn deleted_elements_need_not_be_in_the_order() {
    let live = pod(&names(&["a", "b"]));
    let patch = json!({"spec": {
        "$setElementOrder/containers": names(&["a"]),
        "containers": [{"name": "b", "$patch": "delete"}],
    }});
    assert_eq!(patched("core.v1.Pod", live, patch), pod(&names(&["a"])));
}

#[test]
fn null_beside_an_order_is_no_list() {
    let patch = json!({"spec": {"$setElementOrder/containers": [], "containers": null}});
    let (code, message) = refusal("core.v1.Pod", pod(&names(&["a"])), patch);
    assert_eq!(code, 500);
    assert_eq!(
        message,
        "expected a []interface {}, but received a %!s(<nil>)"
    );
}

#[test]
fn the_patch_of_kubectl_apply_is_understood() {
    let live = json!({"spec": {"replicas": 1, "template": {"spec": {"containers": [
        {"name": "web", "image": "web:1", "terminationMessagePath": "/dev/termination-log",
         "ports": [{"containerPort": 80, "protocol": "TCP"}]},
        {"name": "injected", "image": "proxy"},
    ]}}}});
    let patch = json!({"spec": {"replicas": null, "template": {"spec": {
        "$setElementOrder/containers": [{"name": "web"}],
        "containers": [{
            "$setElementOrder/ports": [{"containerPort": 80}, {"containerPort": 81}],
            "image": "web:2", "name": "web", "ports": [{"containerPort": 81}],
        }],
    }}}});
    let expected = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "web", "image": "web:2", "terminationMessagePath": "/dev/termination-log",
         "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81}]},
        {"name": "injected", "image": "proxy"},
    ]}}}});
    assert_eq!(patched("apps.v1.Deployment", live, patch), expected);
}

/// Quadratic work on these lists would not end within any reasonable time.
#[test]
fn large_lists_are_merged_and_ordered() {
    const ITEMS: usize = 30_000;
    let keyed = |range: std::ops::Range<usize>| -> Value {
        range.map(|i| json!({"name": format!("n{i}")})).collect()
    };
    let order: Value = (0..2 * ITEMS)
        .rev()
        .map(|i| json!({"name": format!("n{i}")}))
        .collect();
    let mut added = keyed(ITEMS..2 * ITEMS);
    added.as_array_mut().unwrap().reverse();
    let patch = json!({"spec": {"$setElementOrder/containers": order, "containers": added}});
    let result = patched("core.v1.Pod", pod(&keyed(0..ITEMS)), patch);
    assert_eq!(result["spec"]["containers"], order);

    let finalizers = |range: std::ops::Range<usize>| -> Value {
        let list: Value = range.map(|i| json!(format!("f{i}"))).collect();
        json!({"metadata": {"finalizers": list}})
    };
    let result = patched(
        "core.v1.Pod",
        finalizers(0..ITEMS),
        finalizers(ITEMS / 2..2 * ITEMS),
    );
    assert_eq!(result, finalizers(0..2 * ITEMS));
}
