//! Properties that hold for all objects and patches.

use super::*;
use crate::patch::json::tests::any_json;

/// A pod with distinct container names, finalizers and labels.
fn a_pod() -> impl Strategy<Value = Value> {
    let env = prop::collection::btree_map("[A-C]", "[a-c]{0,2}", 0..3).prop_map(|vars| {
        let list = vars.iter().map(|(n, v)| json!({"name": n, "value": v}));
        list.collect::<Value>()
    });
    let container = ("[a-c]", env, prop::collection::vec("[a-c]", 0..3));
    let containers = prop::collection::btree_map("[a-f]", container, 0..5).prop_shuffled();
    let finalizers =
        prop::collection::btree_set("[a-e]", 0..4).prop_map(|s| s.into_iter().collect::<Vec<_>>());
    let labels = prop::collection::btree_map("[a-d]", "[a-c]", 0..3);
    (containers, finalizers.prop_shuffle(), labels).prop_map(|(containers, finalizers, labels)| {
        let containers: Value = containers
            .iter()
            .map(|(name, (image, env, args))| json!({"name": name, "image": image, "env": env, "args": args}))
            .collect();
        json!({
            "metadata": {"labels": labels, "finalizers": finalizers},
            "spec": {"containers": containers},
        })
    })
}

trait Shuffled<K, V>: Strategy<Value = std::collections::BTreeMap<K, V>> + Sized {
    fn prop_shuffled(self) -> impl Strategy<Value = Vec<(K, V)>>
    where
        K: Clone + std::fmt::Debug,
        V: Clone + std::fmt::Debug,
    {
        self.prop_map(|map| map.into_iter().collect::<Vec<_>>())
            .prop_shuffle()
    }
}

impl<K, V, S: Strategy<Value = std::collections::BTreeMap<K, V>>> Shuffled<K, V> for S {}

/// The two kinds of merge differ in one respect: a null in a map inside a list is removed here, and
/// stays there.
fn drop_nulls_in_lists(value: &mut Value, in_list: bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|v| drop_nulls_in_lists(v, true)),
        Value::Object(map) => {
            map.retain(|_, v| !in_list || !v.is_null());
            map.values_mut()
                .for_each(|v| drop_nulls_in_lists(v, in_list));
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn a_patch_of_the_own_value_changes_nothing(pod in a_pod()) {
        prop_assert_eq!(patched("core.v1.Pod", pod.clone(), pod.clone()), pod);
    }

    #[test]
    fn an_empty_patch_changes_nothing(pod in a_pod()) {
        prop_assert_eq!(patched("core.v1.Pod", pod.clone(), json!({})), pod);
    }

    #[test]
    fn patching_twice_is_patching_once(live in a_pod(), patch in a_pod()) {
        let once = patched("core.v1.Pod", live, patch.clone());
        prop_assert_eq!(patched("core.v1.Pod", once.clone(), patch), once);
    }

    #[test]
    fn every_element_of_both_sides_is_there_once(live in a_pod(), patch in a_pod()) {
        let keys = |pod: &Value| -> std::collections::BTreeSet<String> {
            let list = pod["spec"]["containers"].as_array().unwrap().iter();
            list.map(|c| c["name"].to_string()).collect()
        };
        let merged = patched("core.v1.Pod", live.clone(), patch.clone());
        let expected: std::collections::BTreeSet<_> = keys(&live).union(&keys(&patch)).cloned().collect();
        prop_assert_eq!(merged["spec"]["containers"].as_array().unwrap().len(), expected.len());
        prop_assert_eq!(keys(&merged), expected);
    }

    #[test]
    fn what_the_schema_does_not_know_merges_as_json(live in any_json(), mut patch in any_json()) {
        drop_nulls_in_lists(&mut patch, false);
        let (live, patch) = (json!({"x": live}), json!({"x": patch}));
        let merged = patched("core.v1.Pod", live.clone(), patch.clone());
        prop_assert_eq!(merged, crate::patch::merge::apply(live, patch).unwrap());
    }

    #[test]
    fn any_patch_is_applied_or_refused(pod in a_pod(), spec in any_json(), list in any_json(), word in any_json()) {
        let patch = json!({"$patch": word, "spec": spec, "metadata": {"finalizers": list}});
        let _ = apply(schema("core.v1.Pod"), pod.clone(), patch);
        let patch = json!({"spec": {"containers": spec, "$setElementOrder/containers": list, "$retainKeys": word}});
        let _ = apply(schema("core.v1.Pod"), pod, patch);
    }
}
