//! Rows of volumes, claims and storage classes.

use jiff::Timestamp;
use serde_json::Value;

use super::read::{self, UNSET, flag, list, text, text_or};

const OLD_CLASS: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
const DEFAULT_CLASS: &str = "/metadata/annotations/storageclass.kubernetes.io~1is-default-class";

/// The short names of access modes, each once.
fn access_modes(object: &Value, pointer: &str) -> String {
    const MODES: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let given = list(object, pointer);
    let shown = MODES
        .iter()
        .filter(|(mode, _)| given.iter().any(|given| given == mode));
    shown.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

fn phase(object: &Value) -> &str {
    if text(object, "/metadata/deletionTimestamp").is_empty() {
        text(object, "/status/phase")
    } else {
        "Terminating"
    }
}

fn class_of(object: &Value) -> &str {
    text_or(object, OLD_CLASS, text(object, "/spec/storageClassName"))
}

pub(super) fn claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let volume = text(object, "/spec/volumeName");
    let (capacity, modes) = if volume.is_empty() {
        ("", String::new())
    } else {
        (
            text(object, "/status/capacity/storage"),
            access_modes(object, "/status/accessModes"),
        )
    };
    vec![
        read::name(object),
        phase(object).into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        class_of(object).into(),
        text_or(object, "/spec/volumeAttributesClassName", UNSET).into(),
        read::age(object, now),
        text_or(object, "/spec/volumeMode", UNSET).into(),
    ]
}

pub(super) fn volume(object: &Value, now: Timestamp) -> Vec<Value> {
    let claim = object
        .pointer("/spec/claimRef")
        .map_or_else(String::new, |claim| {
            format!("{}/{}", text(claim, "/namespace"), text(claim, "/name"))
        });
    vec![
        read::name(object),
        text(object, "/spec/capacity/storage").into(),
        access_modes(object, "/spec/accessModes").into(),
        text(object, "/spec/persistentVolumeReclaimPolicy").into(),
        phase(object).into(),
        claim.into(),
        class_of(object).into(),
        text_or(object, "/spec/volumeAttributesClassName", UNSET).into(),
        text(object, "/status/reason").into(),
        read::age(object, now),
        text_or(object, "/spec/volumeMode", UNSET).into(),
    ]
}

pub(super) fn class(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut name = text(object, "/metadata/name").to_owned();
    if text(object, DEFAULT_CLASS) == "true" {
        name.push_str(" (default)");
    }
    vec![
        name.into(),
        text(object, "/provisioner").into(),
        text_or(object, "/reclaimPolicy", "Delete").into(),
        text_or(object, "/volumeBindingMode", "Immediate").into(),
        flag(object, "/allowVolumeExpansion").into(),
        read::age(object, now),
    ]
}
