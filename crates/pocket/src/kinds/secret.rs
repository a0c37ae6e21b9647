//! Secrets: like ConfigMaps, with types that require certain keys.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    Rules, Traits,
    config_map::{MAX_DATA_BYTES, check_frozen, check_key, decoded_bytes},
    fields::{entries, fill, filled, set, take, text},
    path::Path,
};
use crate::{
    schema::go::json_type,
    status::{Problems, unreadable_json},
};

/// The annotation that names the account whose token a secret holds.
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

pub(super) const RULES: Rules = Rules {
    default,
    validate,
    validate_update,
    warnings,
    traits: Traits {
        checks_metadata_again: true,
        change_first: true,
        status: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn default(secret: &mut Value) {
    fill(secret, "type", "Opaque");
    fold_string_data(secret);
}

/// Merges `stringData`, a convenience for writers, into `data`; only `data` is stored.
fn fold_string_data(secret: &mut Value) {
    let Some(Value::Object(texts)) = take(secret, "stringData") else {
        return;
    };
    if texts.is_empty() {
        return;
    }
    let Some(data) = filled(secret, "data") else {
        return;
    };
    for (key, value) in texts {
        let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
        set(data, &key, encoded);
    }
}

fn validate(secret: &Value, problems: &mut Problems) {
    let mut bytes = 0;
    for (key, value) in entries(secret, "data") {
        check_key(key, "data", problems);
        bytes += decoded_bytes(value);
    }
    if bytes > MAX_DATA_BYTES {
        problems.too_long("data", MAX_DATA_BYTES);
    }
    check_type(secret, problems);
}

/// Warns of a TLS secret without PEM data in its certificate or key; it is stored all the same.
fn warnings(secret: &Value) -> Vec<String> {
    let holds = |key: &str| {
        let text = secret["data"]
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default();
        let decoded = STANDARD.decode(text).unwrap_or_default();
        String::from_utf8_lossy(&decoded).contains("-----BEGIN ")
    };
    if text(secret, "type") != "kubernetes.io/tls" {
        return Vec::new();
    }
    let missing = [("tls.crt", "certificate"), ("tls.key", "key")]
        .into_iter()
        .find(|(key, _)| !holds(key));
    let errors =
        missing.map(|(_, what)| format!("tls: failed to find any PEM data in {what} input"));
    errors.into_iter().collect()
}

/// Checks the keys that each type requires.
fn check_type(secret: &Value, problems: &mut Problems) {
    let require = |keys: &[&str], problems: &mut Problems| {
        for key in keys {
            if secret["data"].get(key).is_none() {
                problems.required(Path::At("data").key(key), "");
            }
        }
    };
    match text(secret, "type") {
        "kubernetes.io/service-account-token"
            if text(&secret["metadata"]["annotations"], ACCOUNT_NAME).is_empty() =>
        {
            let path = format!("metadata.annotations[{ACCOUNT_NAME}]");
            problems.required(path, "");
        }
        "kubernetes.io/dockercfg" => check_json(secret, ".dockercfg", problems),
        "kubernetes.io/dockerconfigjson" => check_json(secret, ".dockerconfigjson", problems),
        "kubernetes.io/basic-auth" => {
            let keys = ["username", "password"];
            if keys.iter().all(|key| secret["data"].get(key).is_none()) {
                require(&keys, problems);
            }
        }
        "kubernetes.io/ssh-auth" if text(&secret["data"], "ssh-privatekey").is_empty() => {
            problems.required(Path::At("data").key("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => require(&["tls.crt", "tls.key"], problems),
        _ => {}
    }
}

fn check_json(secret: &Value, key: &str, problems: &mut Problems) {
    let path = Path::At("data").key(key);
    let Some(encoded) = secret["data"].get(key).and_then(Value::as_str) else {
        problems.required(path, "");
        return;
    };
    let decoded = STANDARD.decode(encoded).unwrap_or_default();
    let why = match serde_json::from_slice::<Value>(&decoded) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_type(&other)
        ),
        Err(error) => unreadable_json(&decoded, &error),
    };
    problems.invalid(path, "<secret contents redacted>", why);
}

fn validate_update(new: &Value, old: &Value, problems: &mut Problems) {
    if text(new, "type") != text(old, "type") {
        problems.invalid("type", text(new, "type"), "field is immutable");
    }
    check_frozen(new, old, &["data"], problems);
}

#[cfg(test)]
mod tests;
