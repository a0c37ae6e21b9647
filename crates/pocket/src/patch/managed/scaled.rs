//! Who owns the wanted number of an object, as its Scale shows it, and back.
//!
//! A Scale is written like an object of its own, with managed fields of its own: the entries of
//! the object that own the number, under the version of the Scale.

use super::{Element, Entry, FieldSet, Managers};

/// The version that Scales are of.
pub const VERSION: &str = "autoscaling/v1";

/// Where versions of a kind keep the number that a Scale sets: `None` of a version that nobody
/// knows, an empty path of one that has no Scale.
pub type Place<'a> = &'a dyn Fn(&str) -> Option<Vec<Element>>;

/// The entries that a Scale of the object shows.
pub fn shown(owners: &Managers, place: Place<'_>) -> Managers {
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
/// An Update entry is known by its version, which is another on the Scale: it loses the number
/// and comes back as an entry of its own, without a time.
pub fn carried_back(
    owners: &Managers,
    mut scaled: Managers,
    api_version: &str,
    place: Place<'_>,
) -> Managers {
    let mut kept = Vec::new();
    for entry in owners.iter() {
        let Some(path) = place(&entry.api_version) else {
            continue;
        };
        let mut entry = entry.clone();
        let owns = !path.is_empty() && entry.fields.contains(&path);
        if owns && scaled.take(&entry).is_none() {
            entry.fields = entry.fields.difference(&at(&path));
        }
        if !entry.fields.is_empty() {
            kept.push(entry);
        }
    }
    let path = place(api_version).unwrap_or_default();
    kept.extend(scaled.iter().map(|entry| Entry {
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
