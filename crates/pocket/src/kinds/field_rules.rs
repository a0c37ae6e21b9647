//! Validation of single fields that many kinds share.

use serde_json::Value;

use super::{fields::text, names::Complaints, path::Path};
use crate::status::Problems;

/// The message for a change of an immutable field.
pub(super) const IMMUTABLE: &str = "field is immutable";

/// Refuses negative integers under any of `keys`.
pub(super) fn non_negative(
    parent: &Value,
    path: &Path<'_>,
    keys: &[&str],
    problems: &mut Problems,
) {
    for key in keys {
        at_least(0, parent, path, key, problems);
    }
}

/// Refuses an integer under `key` that is less than `least`.
pub(super) fn at_least(
    least: i64,
    parent: &Value,
    path: &Path<'_>,
    key: &str,
    problems: &mut Problems,
) {
    if let Some(number) = parent[key].as_i64()
        && number < least
    {
        let detail = format!("must be greater than or equal to {least}");
        problems.invalid(path.field(key), number, detail);
    }
}

/// Validates the range of a user or group id.
pub(super) fn check_id(id: &Value, path: &Path<'_>, problems: &mut Problems) {
    let most = i64::from(i32::MAX);
    if let Some(id) = id.as_i64()
        && !(0..=most).contains(&id)
    {
        let detail = format!("must be between 0 and {most}, inclusive");
        problems.invalid(path, id, detail);
    }
}

/// Refuses a change of `key`.
pub(super) fn immutable(
    new: &Value,
    old: &Value,
    path: &Path<'_>,
    key: &str,
    problems: &mut Problems,
) {
    if new[key] != old[key] {
        problems.invalid(path.field(key), new[key].clone(), IMMUTABLE);
    }
}

/// Refuses a string under `key` that is not in the list, where the schema does not list the values.
pub(super) fn one_of(
    values: &[&str],
    parent: &Value,
    path: &Path<'_>,
    key: &str,
    problems: &mut Problems,
) {
    let value = text(parent, key);
    if !value.is_empty() && !values.contains(&value) {
        problems.not_supported(path.field(key), value, values);
    }
}

/// As [`one_of`], for a field whose empty value is not the same as absent.
pub(super) fn one_of_set(
    values: &[&str],
    parent: &Value,
    path: &Path<'_>,
    key: &str,
    problems: &mut Problems,
) {
    if parent[key] == "" {
        problems.not_supported(path.field(key), "", values);
    }
    one_of(values, parent, path, key, problems);
}

/// Refuses a string that breaks a rule of [`super::names`].
pub(super) fn obeys(
    rule: fn(&str) -> Complaints,
    value: &str,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    for complaint in rule(value) {
        problems.invalid(path, value, complaint);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn negative_numbers_are_refused_with_their_path() {
        let mut problems = Problems::new();
        let object = json!({"a": -1, "b": 0, "c": null});
        let path = Path::At("spec");
        non_negative(&object, &path, &["a", "b", "c", "d"], &mut problems);
        let text = problems.to_string();
        assert_eq!(
            text,
            "spec.a: Invalid value: -1: must be greater than or equal to 0"
        );
    }

    #[test]
    fn absent_and_null_are_the_same_value_of_an_immutable_field() {
        let mut problems = Problems::new();
        let root = Path::Root;
        immutable(&json!({}), &json!({"a": null}), &root, "a", &mut problems);
        assert!(problems.is_empty());
        immutable(&json!({"a": "x"}), &json!({}), &root, "a", &mut problems);
        assert_eq!(
            problems.to_string(),
            "a: Invalid value: \"x\": field is immutable"
        );
    }
}
