use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Absent, Field, Kind, changed_property, find, merge, names, overlay, project};

/// A value that fits a table, with members that no table mentions at every level.
fn stored(fields: &'static [Field], depth: u32) -> BoxedStrategy<Value> {
    let members: Vec<_> = fields
        .iter()
        .map(|field| {
            let value = match field.kind {
                Kind::Text | Kind::Secret => "[a-z]{0,6}".prop_map(Value::from).boxed(),
                Kind::Integer => (0_i64..9).prop_map(Value::from).boxed(),
                Kind::Boolean => any::<bool>().prop_map(Value::from).boxed(),
                Kind::TextMap => prop::collection::btree_map("[a-z]{1,3}", "[a-z]{0,3}", 0..3)
                    .prop_map(|it| json!(it))
                    .boxed(),
                Kind::TextList => prop::collection::vec("[a-z]{0,3}", 0..3)
                    .prop_map(|it| json!(it))
                    .boxed(),
                Kind::Object(inner) => stored(inner, depth + 1),
                Kind::List(inner) => prop::collection::vec(stored(inner, depth + 1), 0..3)
                    .prop_map(|items| {
                        let named = items.into_iter().enumerate().map(|(at, mut item)| {
                            item["name"] = format!("n{at}").into();
                            item
                        });
                        named.collect()
                    })
                    .boxed(),
                Kind::Map(inner) => {
                    prop::collection::btree_map("[a-z]{1,3}", stored(inner, depth + 1), 0..3)
                        .prop_map(|it| json!(it))
                        .boxed()
                }
            };
            (Just(field.stored), prop::option::of(value))
        })
        .collect();
    (members, any::<u8>())
        .prop_map(move |(members, unknown)| {
            let mut object = json!({});
            for (name, value) in members {
                if let Some(value) = value {
                    object[name] = value;
                }
            }
            object[format!("unknownOfLevel{depth}")] = unknown.into();
            object
        })
        .boxed()
}

/// The same without objects that are empty, which a client does not tell from none.
fn pruned(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), pruned(value)))
            .filter(|(_, value)| *value != json!({}))
            .collect(),
        Value::Array(items) => items.iter().map(pruned).collect(),
        other => other.clone(),
    }
}

/// The path of a member that the table does not mention, or does not show, and that is not as before.
/// Items of lists that have another name now are others.
fn changed_outside(fields: &[Field], old: &Value, new: &Value, path: &str) -> Option<String> {
    let members = old.as_object().into_iter().flatten();
    for (name, value) in members {
        let path = format!("{path}/{name}");
        let now = &new[name];
        let field = fields.iter().find(|field| field.stored == name);
        let found = match field.map(|field| field.kind) {
            None | Some(Kind::Secret) => (now != value).then_some(path),
            Some(Kind::Object(inner)) => changed_outside(inner, value, now, &path),
            Some(Kind::List(inner)) => {
                let items = value.as_array().into_iter().flatten();
                let mut pairs = items.filter_map(|item| {
                    let now = now.as_array()?.iter();
                    let mut same = now.filter(|it| it["name"] == item["name"]);
                    Some((item, same.next()?))
                });
                pairs.find_map(|(item, now)| changed_outside(inner, item, now, &path))
            }
            Some(Kind::Map(inner)) => {
                let members = value.as_object().into_iter().flatten();
                let mut pairs = members.filter_map(|(name, item)| Some((item, now.get(name)?)));
                pairs.find_map(|(item, now)| changed_outside(inner, item, now, &path))
            }
            Some(_) => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// A client of one version changes all that it sees: nothing else changes, at any level.
    #[test]
    fn a_client_changes_only_what_its_version_has(
        (version, original, other) in prop::sample::select(names().collect::<Vec<_>>())
            .prop_flat_map(|name| {
                let fields = find(name).unwrap().fields;
                (Just(name), stored(fields, 0), stored(fields, 0))
            })
    ) {
        let fields = find(version).unwrap().fields;
        let wanted = project(fields, &other, false);
        let mut changed = original.clone();
        overlay(fields, &mut changed, &wanted);
        prop_assert_eq!(pruned(&project(fields, &changed, false)), pruned(&wanted));
        prop_assert_eq!(changed_outside(fields, &original, &changed, ""), None);
    }

    #[test]
    fn projecting_and_overlaying_changes_nothing(
        (version, original) in prop::sample::select(names().collect::<Vec<_>>())
            .prop_flat_map(|name| {
                let fields = find(name).unwrap().fields;
                (Just(name), stored(fields, 0))
            })
    ) {
        let fields = find(version).unwrap().fields;
        let seen = project(fields, &original, false);
        let mut back = original.clone();
        overlay(fields, &mut back, &seen);
        prop_assert_eq!(&back, &original);
        prop_assert_eq!(changed_property(fields, &seen, &seen), None);
        // An empty PATCH changes nothing that a client sees.
        let same = merge(fields, &seen, &json!({}), Absent::Keep).unwrap();
        prop_assert_eq!(same, seen);
    }

    #[test]
    fn what_only_the_provider_sets_cannot_be_changed(url in "[a-z]{1,9}") {
        for name in names() {
            let fields = find(name).unwrap().fields;
            let base = json!({"properties": {"apiserverProfile": {"url": "https://a"}}});
            let body = json!({"properties": {"apiserverProfile": {"url": url}, "provisioningState": "Succeeded"}});
            let merged = merge(fields, &base, &body, Absent::Keep).unwrap();
            prop_assert_eq!(&merged["properties"]["apiserverProfile"]["url"], "https://a");
            prop_assert_eq!(merged["properties"].get("provisioningState"), None);
        }
    }
}

#[test]
fn a_mismatch_names_its_path() {
    let fields = find("2023-11-22").unwrap().fields;
    let body = json!({"properties": {"workerProfiles": [{"count": "three"}]}});
    let mismatch = merge(fields, &json!({}), &body, Absent::Clear).unwrap_err();
    assert_eq!(mismatch.path, "properties.workerProfiles[0].count");
    // A field of a later version is none of this one.
    let body = json!({"identity": {}});
    assert_eq!(
        merge(fields, &json!({}), &body, Absent::Clear)
            .unwrap_err()
            .path,
        "identity"
    );
}

#[test]
fn secrets_are_never_projected_for_clients() {
    let stored = json!({"properties": {
        "clusterProfile": {"pullSecret": "hush", "domain": "d"},
        "servicePrincipalProfile": {"clientSecret": "hush"},
        "sshKey": "hush", "kubeadminPassword": "hush", "registryProfiles": [{"password": "hush"}],
    }});
    for name in names() {
        let text = project(find(name).unwrap().fields, &stored, false).to_string();
        assert!(!text.contains("hush"), "{name}: {text}");
    }
}
