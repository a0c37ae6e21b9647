//! Ownership of the replicas of an object, as shown in its Scale, and back.
//!
//! A Scale is written like an object of its own, with managed fields of its own: the entries of the
//! object that own the replicas, under the version of the Scale.

use std::collections::HashSet;

use super::{Element, Entry, FieldSet, Managers};

/// The API version of Scales.
pub const VERSION: &str = "autoscaling/v1";

/// Maps a version of the kind to the path of its replicas: `None` for an unknown version, an empty
/// path for one without a Scale.
pub type ReplicasPath<'a> = &'a dyn Fn(&str) -> Option<Vec<Element>>;

/// The entries that a Scale of the object shows.
pub fn shown(owners: &Managers, place: ReplicasPath<'_>) -> Managers {
    let owns = |entry: &&Entry| {
        let path = place(&entry.api_version);
        path.is_some_and(|path| !path.is_empty() && entry.fields.contains(&path))
    };
    let shown = owners.iter().filter(owns).map(|entry| Entry {
        api_version: VERSION.into(),
        fields: at(&[Element::field("spec"), Element::field("replicas")]),
        ..entry.clone()
    });
    shown.collect()
}

/// The entries of the object after its Scale was written through `api_version`.
///
/// An Update entry is identified by its version, which differs on the Scale: it loses the replicas
/// and comes back as an entry of its own, without a time.
pub fn carried_back(
    owners: &Managers,
    scaled: &Managers,
    api_version: &str,
    place: ReplicasPath<'_>,
) -> Managers {
    let shown: HashSet<_> = scaled.iter().map(Entry::owner).collect();
    let mut taken = HashSet::new();
    let mut kept = Vec::new();
    for owner in owners.iter() {
        let Some(path) = place(&owner.api_version) else {
            continue;
        };
        let mut entry = owner.clone();
        let owns = !path.is_empty() && entry.fields.contains(&path);
        let keeps = owns && shown.contains(&owner.owner()) && taken.insert(owner.owner());
        if owns && !keeps {
            entry.fields = entry.fields.difference(&at(&path));
        }
        if !entry.fields.is_empty() {
            kept.push(entry);
        }
    }
    let path = place(api_version).unwrap_or_default();
    let new = scaled
        .iter()
        .filter(|entry| !taken.contains(&entry.owner()));
    kept.extend(new.map(|entry| Entry {
        api_version: api_version.into(),
        fields: at(&path),
        time: None,
        ..entry.clone()
    }));
    Managers::from_iter(kept)
}

fn at(path: &[Element]) -> FieldSet {
    let mut set = FieldSet::default();
    set.insert(path);
    set
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn place(version: &str) -> Option<Vec<Element>> {
        (version == "apps/v1").then(|| vec![Element::field("spec"), Element::field("replicas")])
    }

    fn entry(manager: &str, operation: &str, subresource: &str, fields: &Value) -> Value {
        let mut entry = json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1", "fieldsV1": fields, "time": "2026-01-01T00:00:00Z"});
        if !subresource.is_empty() {
            entry["subresource"] = subresource.into();
        }
        entry
    }

    fn managers(entries: &[Value]) -> Managers {
        Managers::decode(&json!(entries)).unwrap()
    }

    fn described(managers: Managers) -> Vec<String> {
        let entries = managers.encode();
        let told = entries.as_array().unwrap().iter().map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
            let names = ["manager", "operation", "apiVersion", "subresource", "time"];
            format!("{} {}", names.map(text).join(" "), entry["fieldsV1"])
        });
        told.collect()
    }

    const NUMBER: &str = r#"{"f:spec":{"f:replicas":{}}}"#;

    #[test]
    fn a_scale_shows_those_who_own_the_number() {
        let owners = managers(&[
            entry(
                "maker",
                "Update",
                "",
                &json!({"f:spec": {"f:paused": {}, "f:replicas": {}}}),
            ),
            entry(
                "painter",
                "Update",
                "",
                &json!({"f:metadata": {"f:labels": {}}}),
            ),
        ]);
        let expected = format!("maker Update autoscaling/v1 - 2026-01-01T00:00:00Z {NUMBER}");
        assert_eq!(described(shown(&owners, &place)), [expected]);
    }

    #[test]
    fn an_updater_keeps_the_number_in_an_entry_of_its_own() {
        let fields = json!({"f:spec": {"f:paused": {}, "f:replicas": {}}});
        let owners = managers(&[entry("maker", "Update", "", &fields)]);
        let scaled = shown(&owners, &place);
        assert_eq!(
            described(carried_back(&owners, &scaled, "apps/v1", &place)),
            [
                format!("maker Update apps/v1 - - {NUMBER}"),
                r#"maker Update apps/v1 - 2026-01-01T00:00:00Z {"f:spec":{"f:paused":{}}}"#
                    .to_owned(),
            ]
        );
    }

    #[test]
    fn an_applier_keeps_what_it_has_and_a_new_owner_takes_the_number() {
        let fields: Value = serde_json::from_str(NUMBER).unwrap();
        let owners = managers(&[entry("applier", "Apply", "", &fields)]);
        let kept = carried_back(&owners, &shown(&owners, &place), "apps/v1", &place);
        let applier = format!("applier Apply apps/v1 - 2026-01-01T00:00:00Z {NUMBER}");
        assert_eq!(described(kept), [applier]);
        let taken = managers(&[entry("ci", "Update", "scale", &fields)]);
        let taken = carried_back(&owners, &taken, "apps/v1", &place);
        assert_eq!(
            described(taken),
            [format!("ci Update apps/v1 scale - {NUMBER}")]
        );
    }

    #[test]
    fn entries_of_unknown_versions_are_dropped() {
        let mut old = entry("maker", "Update", "", &json!({"f:spec": {"f:paused": {}}}));
        old["apiVersion"] = "apps/v0".into();
        let owners = managers(&[old]);
        assert!(carried_back(&owners, &Managers::default(), "apps/v1", &place).is_empty());
    }
}
