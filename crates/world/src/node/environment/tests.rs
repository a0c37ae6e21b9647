use serde_json::{Value, json};

use super::*;

fn sources() -> PodSources {
    let read = |value: Value| serde_json::from_value(value).unwrap();
    PodSources {
        pod: serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "shop", "uid": "u", "labels": {"app": "web", "b": "1"}},
            "spec": {"nodeName": "here", "containers": []},
            "status": {"podIP": "127.1.1.2"},
        }))
        .unwrap(),
        config_maps: [("c".to_owned(), read(json!({"data": {"colour": "blue", "size": "3"}})))].into(),
        secrets: [(
            "s".to_owned(),
            serde_json::from_value(json!({"data": {"password": "aHVudGVyMg=="}})).unwrap(),
        )]
        .into(),
        ..PodSources::default()
    }
}

fn of(container: Value) -> Result<BTreeMap<String, String>, WaitingReason> {
    let mut container = container;
    container["name"] = "main".into();
    let given = BTreeMap::from([("HOME".to_owned(), "/".to_owned())]);
    environment(
        &serde_json::from_value(container).unwrap(),
        &given,
        &sources(),
    )
}

#[test]
fn variables_come_from_all_sources_and_the_later_wins() {
    let all = of(json!({
        "envFrom": [{"configMapRef": {"name": "c"}, "prefix": "CFG_"}, {"secretRef": {"name": "gone", "optional": true}}],
        "env": [
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
            {"name": "URL", "value": "db://me:$(PASSWORD)@$(HOST)/$$(HOME)"},
            {"name": "CFG_size", "value": "4"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
            {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
            {"name": "ABSENT", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "none", "optional": true}}},
        ],
        "resources": {"limits": {"memory": "1Gi"}},
    }))
    .unwrap();
    let expected = [
        ("APP", "web"),
        ("CFG_colour", "blue"),
        ("CFG_size", "4"),
        ("HOME", "/"),
        ("IP", "127.1.1.2"),
        ("MEMORY", "1024"),
        ("PASSWORD", "hunter2"),
        ("URL", "db://me:hunter2@$(HOST)/$(HOME)"),
    ];
    let found: Vec<_> = all
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_missing_source_is_named() {
    for (variable, message) in [
        (
            json!({"configMapKeyRef": {"name": "gone", "key": "k"}}),
            "configmap \"gone\" not found",
        ),
        (
            json!({"configMapKeyRef": {"name": "c", "key": "k"}}),
            "couldn't find key k in ConfigMap c",
        ),
        (
            json!({"secretKeyRef": {"name": "s", "key": "k"}}),
            "couldn't find key k in Secret s",
        ),
        (
            json!({"fieldRef": {"fieldPath": "spec.colour"}}),
            "env X: the pod has no such field",
        ),
    ] {
        let error = of(json!({"env": [{"name": "X", "valueFrom": variable}]})).unwrap_err();
        assert_eq!(
            (error.reason, error.message.as_str()),
            ("CreateContainerConfigError", message)
        );
    }
}
