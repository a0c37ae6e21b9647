use serde_json::json;

use super::*;
use crate::kinds::testing::{defaulted, errors, update_errors};

#[test]
fn string_data_is_folded_over_data() {
    let sent = json!({"data": {"a": "eA==", "c": "eQ=="}, "stringData": {"a": "b"}});
    let stored = json!({"type": "Opaque", "data": {"a": "Yg==", "c": "eQ=="}});
    assert_eq!(defaulted(&RULES, &sent), stored);
}

#[test]
fn types_promise_their_keys() {
    for (kind, data, expected) in [
        (
            "kubernetes.io/tls",
            json!({"tls.crt": ""}),
            vec!["data[tls.key]: Required value"],
        ),
        (
            "kubernetes.io/tls",
            json!({"tls.crt": "", "tls.key": ""}),
            vec![],
        ),
        (
            "kubernetes.io/ssh-auth",
            json!({}),
            vec!["data[ssh-privatekey]: Required value"],
        ),
        ("kubernetes.io/basic-auth", json!({"password": ""}), vec![]),
        (
            "kubernetes.io/basic-auth",
            json!({}),
            vec![
                "data[username]: Required value",
                "data[password]: Required value",
            ],
        ),
        (
            "kubernetes.io/dockerconfigjson",
            json!({".dockerconfigjson": "e30="}),
            vec![],
        ),
        (
            "kubernetes.io/dockercfg",
            json!({}),
            vec!["data[.dockercfg]: Required value"],
        ),
        (
            "kubernetes.io/service-account-token",
            json!({}),
            vec!["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
        ("example.com/mine", json!({}), vec![]),
    ] {
        let secret = json!({"type": kind, "data": data});
        assert_eq!(errors(&RULES, &secret), expected, "{kind}");
    }
}

#[test]
fn a_broken_docker_config_is_refused_without_showing_it() {
    let secret = json!({"type": "kubernetes.io/dockercfg", "data": {".dockercfg": "c2VjcmV0"}});
    let errors = errors(&RULES, &secret);
    let start = "data[.dockercfg]: Invalid value: \"<secret contents redacted>\"";
    assert!(errors[0].starts_with(start), "{errors:?}");
    assert!(!errors[0].contains("c2VjcmV0"));
}

#[test]
fn a_docker_config_is_a_map() {
    for (config, expected) in [
        ("{}", None),
        ("null", None),
        ("[1]", Some("array")),
        ("7", Some("number")),
    ] {
        let data = json!({".dockercfg": STANDARD.encode(config)});
        let errors = errors(
            &RULES,
            &json!({"type": "kubernetes.io/dockercfg", "data": data}),
        );
        let found = errors
            .first()
            .map(|text| text.split("unmarshal ").last().unwrap_or_default());
        let of = |ty| format!("{ty} into Go value of type map[string]interface {{}}");
        assert_eq!(found.map(str::to_owned), expected.map(of), "{config}");
    }
}

#[test]
fn data_is_at_most_a_mebibyte_once_decoded() {
    let of = |bytes: usize| json!({"data": {"a": STANDARD.encode(vec![0; bytes])}});
    assert_eq!(errors(&RULES, &of(MAX_DATA_BYTES)), [""; 0]);
    assert_eq!(
        errors(&RULES, &of(MAX_DATA_BYTES + 1)),
        ["data: Too long: may not be more than 1048576 bytes"]
    );
}

#[test]
fn the_type_and_frozen_data_do_not_change() {
    let old = json!({"type": "Opaque", "immutable": true, "data": {"a": "eA=="}});
    let new = json!({"type": "other", "immutable": true, "data": {"a": "eQ=="}});
    assert_eq!(
        update_errors(&RULES, &new, &old),
        [
            "type: Invalid value: \"other\": field is immutable",
            "data: Forbidden: field is immutable when `immutable` is set",
        ]
    );
}
