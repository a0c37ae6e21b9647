//! Rules on the mounts of a container: what is mounted is there, and only once per place.

use std::collections::HashSet;

use serde_json::Value;

use super::volumes::{check_inside, sound};
use crate::{
    kinds::{
        fields::{list, text},
        path::Path,
    },
    status::{FieldError, FieldErrorKind, Problems},
};

pub(super) fn check(container: &Value, spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let known = sound(spec);
    let mounts = path.field("volumeMounts");
    let mut places = HashSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let path = mounts.index(index);
        check_known(mount, &known, &path, problems);
        let place = text(mount, "mountPath");
        if !place.is_empty() && !places.insert(place) {
            problems.invalid(path.field("mountPath"), place, "must be unique");
        }
        check_sub_path(mount, &path, problems);
    }
    let devices = path.field("volumeDevices");
    for (index, device) in list(container, "volumeDevices").iter().enumerate() {
        let path = devices.index(index);
        check_known(device, &known, &path, problems);
        let place = text(device, "devicePath");
        if !place.is_empty() && !places.insert(place) {
            problems.invalid(path.field("devicePath"), place, "must be unique");
        }
        if place.split('/').any(|part| part == "..") {
            let detail = "can not contain backsteps ('..')";
            problems.invalid(path.field("devicePath"), place, detail);
        }
    }
}

fn check_known(mount: &Value, known: &HashSet<&str>, path: &Path<'_>, problems: &mut Problems) {
    let name = text(mount, "name");
    if !known.contains(name) {
        problems.push(FieldError {
            kind: FieldErrorKind::NotFound,
            path: path.field("name").to_string(),
            value: Some(name.into()),
            detail: String::new(),
        });
    }
}

fn check_sub_path(mount: &Value, path: &Path<'_>, problems: &mut Problems) {
    let (plain, expanded) = (text(mount, "subPath"), text(mount, "subPathExpr"));
    if !plain.is_empty() && !expanded.is_empty() {
        let detail = "subPathExpr and subPath are mutually exclusive";
        problems.invalid(path.field("subPathExpr"), expanded, detail);
    }
    check_inside(plain, &path.field("subPath"), problems);
    check_inside(expanded, &path.field("subPathExpr"), problems);
}
