//! Properties of apply.

use proptest::{collection, option, prelude::*};

use super::*;

/// A configuration with every kind of structure: maps, sets, keyed lists within keyed lists,
/// atomic lists and scalars.
fn config() -> impl Strategy<Value = Value> {
    let entries = || collection::btree_map("[a-c]", "[x-y]", 0..3);
    let env = collection::btree_map("[A-C]", "[x-y]", 0..3);
    let container = (
        option::of("[x-y]"),
        env,
        option::of(collection::vec("[a-b]", 0..3)),
    );
    let containers = collection::btree_map("[a-d]", container, 0..4).prop_shuffle_entries();
    let finalizers = collection::btree_set("[a-c]/[a-c]", 0..3);
    (entries(), finalizers, option::of(0..3), containers).prop_map(
        |(labels, finalizers, replicas, containers)| {
            let containers: Vec<_> = containers
                .into_iter()
                .map(|(name, (image, env, args))| {
                    let env = env.iter().map(|(k, v)| json!({"name": k, "value": v}));
                    without_voids(&json!({"name": name, "image": image, "args": args,
                        "env": env.collect::<Vec<_>>()}))
                })
                .collect();
            let mut object = pod(&json!({"containers": containers}));
            object["metadata"]["labels"] = json!(labels);
            object["metadata"]["finalizers"] = json!(finalizers);
            object["spec"]["replicas"] = json!(replicas);
            without_voids(&object)
        },
    )
}

/// Shuffles entries: the order of items is part of a configuration.
trait ShuffleEntries<K, V> {
    fn prop_shuffle_entries(self) -> impl Strategy<Value = Vec<(K, V)>>;
}

impl<S, K, V> ShuffleEntries<K, V> for S
where
    S: Strategy<Value = std::collections::BTreeMap<K, V>>,
    K: Clone + std::fmt::Debug,
    V: Clone + std::fmt::Debug,
{
    fn prop_shuffle_entries(self) -> impl Strategy<Value = Vec<(K, V)>> {
        self.prop_map(|map| map.into_iter().collect::<Vec<_>>())
            .prop_shuffle()
    }
}

/// Without nulls and empty containers, which are not preserved.
fn without_voids(value: &Value) -> Value {
    let void = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), without_voids(value)))
            .filter(|(_, value)| !void(value))
            .collect(),
        Value::Array(items) => items.iter().map(without_voids).collect(),
        _ => value.clone(),
    }
}

fn without_entries(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    without_voids(&object)
}

fn bare() -> Value {
    json!({"apiVersion": "v1", "kind": "Deployment", "metadata": {"name": "d"}})
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(first in config(), second in config()) {
        let mut story = Story::of(deployment_schema());
        story.try_apply("alice", &first, true).unwrap();
        let once = story.try_apply("bob", &second, true).unwrap().clone();
        let again = apply(story.schema, Some(&once), &second, &stamp("bob", T2), false).unwrap();
        prop_assert_eq!(again.object, once);
    }

    #[test]
    fn what_one_manager_applies_alone_is_what_it_applied_last(a in config(), b in config()) {
        let mut story = Story::of(deployment_schema());
        let object = story.apply("alice", &a);
        prop_assert_eq!(without_entries(object), a);
        let object = story.apply("alice", &b);
        prop_assert_eq!(without_entries(object), b);
    }

    #[test]
    fn a_manager_leaves_no_trace_of_what_only_it_applied(a in config(), b in config()) {
        let mut story = Story::of(deployment_schema());
        story.apply("alice", &a);
        let before = story.live.clone();
        if story.try_apply("bob", &b, false).is_ok() {
            story.apply("bob", &bare());
            let (left, before) = (story.live.unwrap(), before.unwrap());
            prop_assert_eq!(owned(&left, "bob"), Value::Null);
            prop_assert_eq!(owned(&left, "alice"), owned(&before, "alice"));
            let claim = |object| FieldSet::of_value(deployment_schema(), &without_entries(object));
            prop_assert_eq!(claim(&left), claim(&before));
        }
    }

    #[test]
    fn the_applier_gets_its_values_and_owns_its_claim(a in config(), b in config()) {
        let mut story = Story::of(deployment_schema());
        story.apply("alice", &a);
        let object = story.try_apply("bob", &b, true).unwrap();
        let claim = FieldSet::of_value(deployment_schema(), &b).difference(untracked());
        let recorded = match owned(object, "bob") {
            Value::Null => FieldSet::default(),
            fields => FieldSet::from_fields_v1(&fields).unwrap(),
        };
        prop_assert_eq!(&recorded, &claim);
        // The configuration does not differ from what is stored.
        let changes = compare(deployment_schema(), Some(object), &b);
        prop_assert!(changes.added.is_empty() && changes.modified.is_empty());
    }

    #[test]
    fn what_is_there_was_put_there_by_exactly_one_updater(
        writes in collection::vec((0..3_usize, config()), 1..5),
    ) {
        let mut story = Story::of(deployment_schema());
        for (writer, config) in writes {
            story.update(["a", "b", "c"][writer], |object| *object = config);
        }
        let object = story.live.unwrap();
        let managers = Managers::of(&object).unwrap();
        let mut all = FieldSet::default();
        for entry in managers.iter() {
            prop_assert!(entry.fields.intersection(&all).is_empty());
            all = all.union(entry.fields.clone());
        }
        let present = compare(deployment_schema(), None, &object);
        let present = present.added.union(present.modified).difference(untracked());
        // Tracking ends for good when the last owned field is removed.
        prop_assert!(all == present || managers.is_empty());
    }
}
