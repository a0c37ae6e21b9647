//! ConfigMaps, and what they share with Secrets: keys that become files, and `immutable`.

use serde_json::Value;

use super::{
    Rules, Traits,
    fields::{entries, flag},
    names,
    path::Path,
};
use crate::status::Problems;

/// Bytes of data in one ConfigMap or Secret, at most.
pub(super) const MAX_DATA_BYTES: usize = 1024 * 1024;

pub(super) const RULES: Rules = Rules {
    validate,
    validate_update,
    traits: Traits {
        checks_metadata_again: true,
        change_first: true,
        status: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn validate(map: &Value, problems: &mut Problems) {
    let binary = &map["binaryData"];
    let mut bytes = 0;
    for (key, value) in entries(map, "data") {
        check_key(key, "data", problems);
        if binary.get(key).is_some() {
            let detail = "duplicate of key present in binaryData";
            problems.invalid(Path::At("data").key(key), key.as_str(), detail);
        }
        bytes += value.as_str().map_or(0, str::len);
    }
    for (key, value) in entries(map, "binaryData") {
        check_key(key, "binaryData", problems);
        bytes += decoded_bytes(value);
    }
    if bytes > MAX_DATA_BYTES {
        // The API gives the whole map no field name here.
        problems.too_long("[]", MAX_DATA_BYTES);
    }
}

/// Validates one key of a ConfigMap or Secret.
pub(super) fn check_key(key: &str, field: &str, problems: &mut Problems) {
    for complaint in names::config_key(key) {
        problems.invalid(Path::At(field).key(key), key, complaint);
    }
}

/// The decoded length of a base64 text.
pub(super) fn decoded_bytes(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    text.trim_end_matches('=').len() * 3 / 4
}

fn validate_update(new: &Value, old: &Value, problems: &mut Problems) {
    check_frozen(new, old, &["data", "binaryData"], problems);
}

/// Checks that neither the data nor `immutable` changes once `immutable` is set.
pub(super) fn check_frozen(new: &Value, old: &Value, data: &[&str], problems: &mut Problems) {
    const DETAIL: &str = "field is immutable when `immutable` is set";
    if !flag(old, "immutable") {
        return;
    }
    if !flag(new, "immutable") {
        problems.forbidden("immutable", DETAIL);
    }
    for field in data {
        if !entries(new, field).eq(entries(old, field)) {
            problems.forbidden(*field, DETAIL);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::{errors, update_errors};

    #[test]
    fn keys_are_file_names_and_occur_once() {
        let map = json!({"data": {"a b": "", "twice": ""}, "binaryData": {"twice": "AA=="}});
        let errors = errors(&RULES, &map);
        assert!(errors[0].starts_with("data[a b]: Invalid value: \"a b\": a valid config key"));
        assert_eq!(
            errors[1],
            "data[twice]: Invalid value: \"twice\": duplicate of key present in binaryData"
        );
    }

    #[test]
    fn data_is_at_most_a_mebibyte() {
        let full =
            json!({"data": {"a": "x".repeat(MAX_DATA_BYTES - 1)}, "binaryData": {"b": "AA=="}});
        assert_eq!(errors(&RULES, &full), [""; 0]);
        let over = json!({"data": {"a": "x".repeat(MAX_DATA_BYTES + 1)}});
        assert_eq!(
            errors(&RULES, &over),
            ["[]: Too long: may not be more than 1048576 bytes"]
        );
    }

    #[test]
    fn an_immutable_map_stays_as_it_is() {
        let old = json!({"immutable": true, "data": {"a": "b"}});
        assert_eq!(update_errors(&RULES, &old, &old), [""; 0]);
        let new = json!({"data": {"a": "c"}});
        assert_eq!(
            update_errors(&RULES, &new, &old),
            [
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
            ]
        );
        let free = json!({"data": {"a": "b"}});
        assert_eq!(update_errors(&RULES, &new, &free), [""; 0]);
    }
}
