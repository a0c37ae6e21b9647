//! Managers that wrote in another version than the request.
//!
//! kube-apiserver compares objects once more in the version of each manager. That comparison
//! excludes nothing, not even the status that the resource itself does not write, and refuses
//! duplicate items.

use serde_json::Value;

use super::{ConfigProblem, check};
use crate::{
    patch::managed::{Managers, compare, put_managed_fields, untracked},
    schema::Schema,
};

/// Removes from managers of other versions the fields that a write of the resource itself would
/// have changed, whether or not it may. Where items are not unique, all ownership is lost.
///
/// `sent` is the object as it was sent, `new` the resulting object with its managed fields.
pub fn track_versions(
    schema: Schema<'_>,
    old: &Value,
    sent: &Value,
    new: &mut Value,
    stamp: (&str, Option<&str>),
) {
    let (api_version, subresource) = stamp;
    let Ok(mut managers) = Managers::of(new) else {
        return;
    };
    if !is_of_others(&managers, api_version) {
        return;
    }
    if !doubles(schema, old).is_empty() || !doubles(schema, sent).is_empty() {
        return put_managed_fields(new, Value::Null);
    }
    if subresource.is_some() {
        return;
    }
    let changes = compare(schema, Some(old), sent).map(|set| set.difference(untracked()));
    let elsewhere = |version: &str| version != api_version;
    if managers.give_up_in(elsewhere, &changes) {
        managers.drop_empty();
        put_managed_fields(new, managers.encode());
    }
}

/// Whether a manager wrote in another version.
pub(super) fn is_of_others(managers: &Managers, api_version: &str) -> bool {
    let mut versions = managers.iter().map(|entry| &entry.api_version);
    versions.any(|version| version != api_version)
}

/// The duplicate items of `object`.
pub(super) fn doubles(schema: Schema<'_>, object: &Value) -> Vec<ConfigProblem> {
    let mut problems = check::check(schema, object);
    problems.retain(|problem| problem.message.starts_with("duplicate entries"));
    problems
}
