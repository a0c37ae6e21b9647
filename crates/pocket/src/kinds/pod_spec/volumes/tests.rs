use serde_json::json;

use super::*;
use crate::kinds::testing::texts;

fn errors(volumes: &Value, pod: Option<&str>) -> (Vec<String>, usize) {
    let spec = json!({"volumes": volumes});
    let mut problems = Problems::new();
    let sound = check(&spec, pod, &Path::At("spec"), &mut problems).len();
    (texts(&problems), sound)
}

fn source_errors(source: &Value) -> Vec<String> {
    let mut volume = source.clone();
    volume["name"] = json!("v");
    errors(&json!([volume]), None).0
}

#[test]
fn a_claim_of_ones_own_says_how_much() {
    let claim = |requests: Value| {
        json!({"ephemeral": {"volumeClaimTemplate": {
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": requests}},
        }}})
    };
    assert_eq!(source_errors(&claim(json!({"storage": "1Gi"}))), [""; 0]);
    let place = "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]";
    assert_eq!(
        source_errors(&claim(json!({}))),
        [format!("{place}: Required value")]
    );
    assert_eq!(
        source_errors(&claim(json!({"storage": "-1"}))),
        [format!(
            "{place}: Invalid value: \"-1\": must be greater than zero"
        )]
    );
}

#[test]
fn only_the_first_source_is_judged_and_the_others_refused() {
    assert_eq!(
        source_errors(&json!({"nfs": {}, "downwardAPI": {}, "csi": {}})),
        [
            "spec.volumes[0].nfs.server: Required value",
            "spec.volumes[0].nfs.path: Required value",
            "spec.volumes[0].nfs.path: Invalid value: \"\": must be an absolute path",
            "spec.volumes[0].downwarAPI: Forbidden: may not specify more than 1 volume type",
            "spec.volumes[0].csi: Forbidden: may not specify more than 1 volume type",
        ]
    );
}

#[test]
fn a_broken_volume_is_not_there() {
    let (errors, sound) = errors(
        &json!([
            {"name": "v", "secret": {}},
            {"name": "v", "emptyDir": {}},
            {"name": "v", "emptyDir": {}},
        ]),
        None,
    );
    assert_eq!(
        errors,
        [
            "spec.volumes[0].secret.secretName: Required value",
            "spec.volumes[2].name: Duplicate value: \"v\"",
        ]
    );
    assert_eq!(sound, 1);
}

#[test]
fn a_claim_is_named_after_its_pod() {
    let volumes = json!([{"name": "v", "ephemeral": {"volumeClaimTemplate": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}},
    }}}]);
    let long = "p".repeat(252);
    let (told_of_pod, sound) = errors(&volumes, Some(&long));
    assert!(
        told_of_pod[0].ends_with("-v\": must be no more than 253 characters"),
        "{told_of_pod:?}"
    );
    assert_eq!(sound, 0);
    assert_eq!(errors(&volumes, None), (Vec::new(), 1));
}

#[test]
fn sources_are_judged_in_their_own_words() {
    for (source, text) in [
        (
            json!({"gcePersistentDisk": {"pdName": "a", "partition": 256}}),
            "persistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive",
        ),
        (
            json!({"emptyDir": {"sizeLimit": "-1"}}),
            "emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity",
        ),
        (
            json!({"downwardAPI": {"items": [{"path": "a"}]}}),
            "downwardAPI: Required value: one of fieldRef and resourceFieldRef is required",
        ),
        (
            json!({"downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name['a']"}}]}}),
            "downwardAPI.fieldRef.fieldPath: Invalid value: \"metadata.name['a']\": error converting fieldPath: field label does not support subscript: metadata.name['a']",
        ),
        (
            json!({"projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 600}}]}}),
            "projected.path: Required value",
        ),
        (
            json!({"projected": {"sources": [
                {"secret": {"name": "a", "items": [{"key": "k", "path": "x"}]}},
                {"configMap": {"name": "b", "items": [{"key": "k", "path": "x"}]}},
            ]}}),
            "projected: Invalid value: \"b\": conflicting duplicate paths",
        ),
        (
            json!({"iscsi": {"targetPortal": "t", "iqn": "x"}}),
            "iscsi.iqn: Invalid value: \"x\": must be valid format starting with iqn, eui, or naa",
        ),
        (
            json!({"fc": {"targetWWNs": ["a"]}}),
            "fc.lun: Required value: lun is required if targetWWNs is specified",
        ),
        (
            json!({"secret": {"secretName": "s", "items": [{"key": "k", "path": "..a"}]}}),
            "secret.items[0].path: Invalid value: \"..a\": must not start with '..'",
        ),
    ] {
        assert_eq!(source_errors(&source), [format!("spec.volumes[0].{text}")]);
    }
}
