//! ConfigMaps, and what they share with Secrets: keys that become files, and a switch that
//! freezes the data.

use serde_json::Value;

use super::{
    Rules, Traits,
    fields::{entries, flag},
    names,
    path::Path,
};
use crate::status::Problems;

/// Most bytes of data in one ConfigMap or Secret.
pub(super) const DATA_BYTES: usize = 1024 * 1024;

/// The rules of ConfigMaps.
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
    if bytes > DATA_BYTES {
        // The API gives the whole map no name here.
        problems.too_long("[]", DATA_BYTES);
    }
}

/// Rules on one key of a ConfigMap or Secret.
pub(super) fn check_key(key: &str, field: &str, problems: &mut Problems) {
    for complaint in names::config_key(key) {
        problems.invalid(Path::At(field).key(key), key, complaint);
    }
}

/// How many bytes a base64 text stands for.
pub(super) fn decoded_bytes(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    text.trim_end_matches('=').len() * 3 / 4
}

fn validate_update(new: &Value, old: &Value, problems: &mut Problems) {
    check_frozen(new, old, &["data", "binaryData"], problems);
}

/// Once `immutable` is set, neither it nor the data change.
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
    use crate::kinds::testing::{told, told_of_update};

    #[test]
    fn keys_are_file_names_and_occur_once() {
        let map = json!({"data": {"a b": "", "twice": ""}, "binaryData": {"twice": "AA=="}});
        let told = told(&RULES, &map);
        assert!(told[0].starts_with("data[a b]: Invalid value: \"a b\": a valid config key"));
        assert_eq!(
            told[1],
            "data[twice]: Invalid value: \"twice\": duplicate of key present in binaryData"
        );
    }

    #[test]
    fn data_is_at_most_a_mebibyte() {
        let full = json!({"data": {"a": "x".repeat(DATA_BYTES - 1)}, "binaryData": {"b": "AA=="}});
        assert_eq!(told(&RULES, &full), [""; 0]);
        let over = json!({"data": {"a": "x".repeat(DATA_BYTES + 1)}});
        assert_eq!(
            told(&RULES, &over),
            ["[]: Too long: may not be more than 1048576 bytes"]
        );
    }

    #[test]
    fn an_immutable_map_stays_as_it_is() {
        let old = json!({"immutable": true, "data": {"a": "b"}});
        assert_eq!(told_of_update(&RULES, &old, &old), [""; 0]);
        let new = json!({"data": {"a": "c"}});
        assert_eq!(
            told_of_update(&RULES, &new, &old),
            [
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
            ]
        );
        let free = json!({"data": {"a": "b"}});
        assert_eq!(told_of_update(&RULES, &new, &free), [""; 0]);
    }
}
