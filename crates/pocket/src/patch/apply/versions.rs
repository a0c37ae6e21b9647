//! Managers that wrote in another version than the request.
//!
//! The reference compares objects once more in the version of each manager. There nothing is
//! excepted, not even the status that the resource itself does not write, and items that come twice
//! are refused.

use serde_json::Value;

use super::{Problem, check};
use crate::{
    patch::managed::{Managers, compare, put_managed_fields, untracked},
    schema::Schema,
};

/// Takes from managers of other versions what a write of the resource itself would have changed,
/// whether or not it may. Where items cannot be told apart nobody owns anything any more.
///
/// `sent` is the object as it was sent, `new` what is made of it and has its managed fields.
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

/// Whether some manager wrote in another version.
pub(super) fn is_of_others(managers: &Managers, api_version: &str) -> bool {
    let mut versions = managers.iter().map(|entry| &entry.api_version);
    versions.any(|version| version != api_version)
}

/// Items of `object` that cannot be told apart.
pub(super) fn doubles(schema: Schema<'_>, object: &Value) -> Vec<Problem> {
    let mut problems = check::check(schema, object);
    problems.retain(|problem| problem.message.starts_with("duplicate entries"));
    problems
}
