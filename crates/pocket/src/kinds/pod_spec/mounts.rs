//! Validation of the mounts and devices of a container: their volumes exist, and each path is used
//! once.

use std::collections::HashSet;

use serde_json::Value;

use super::volumes::{ValidVolumes, check_inside, leads_back};
use crate::{
    kinds::{
        fields::{flag, is_set, list, text},
        path::Path,
    },
    status::{FieldError, FieldErrorKind, Problems},
};

const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const DEPTHS: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];

pub(super) fn check(
    container: &Value,
    volumes: &ValidVolumes<'_>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    check_mounts(container, volumes, &path.field("volumeMounts"), problems);
    check_devices(container, volumes, &path.field("volumeDevices"), problems);
}

fn uses<'a>(container: &'a Value, field: &str, key: &str) -> HashSet<&'a str> {
    let all = list(container, field).iter();
    all.map(|one| text(one, key)).collect()
}

fn check_mounts(
    container: &Value,
    volumes: &ValidVolumes<'_>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let devices = uses(container, "volumeDevices", "name");
    let device_places = uses(container, "volumeDevices", "devicePath");
    let mut places = HashSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at = path.index(index);
        let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            problems.required(at.field("name"), "");
        }
        if !volumes.contains_key(name) {
            not_found(&at.field("name"), name, problems);
        }
        if place.is_empty() {
            problems.required(at.field("mountPath"), "");
        }
        if !places.insert(place) {
            problems.invalid(at.field("mountPath"), place, "must be unique");
        }
        if devices.contains(name) {
            let detail = "must not already exist in volumeDevices";
            problems.invalid(at.field("name"), name, detail);
        }
        if device_places.contains(place) {
            let detail = "must not already exist as a path in volumeDevices";
            problems.invalid(at.field("mountPath"), place, detail);
        }
        check_sub_path(mount, &at, path, problems);
        let privileged = flag(&container["securityContext"], "privileged");
        check_propagation(mount, privileged, path, problems);
        check_depth(mount, path, problems);
    }
}

pub(super) fn not_found(path: &Path<'_>, name: &str, problems: &mut Problems) {
    problems.push(FieldError {
        kind: FieldErrorKind::NotFound,
        path: path.to_string(),
        value: Some(name.into()),
        detail: String::new(),
    });
}

/// Most errors are reported for all mounts at `path`, and only some for the one at `at`.
fn check_sub_path(mount: &Value, at: &Path<'_>, path: &Path<'_>, problems: &mut Problems) {
    let (plain, expanded) = (text(mount, "subPath"), text(mount, "subPathExpr"));
    check_inside(plain, &path.field("subPath"), problems);
    if !plain.is_empty() && !expanded.is_empty() {
        let detail = "subPathExpr and subPath are mutually exclusive";
        problems.invalid(at.field("subPathExpr"), expanded, detail);
    }
    check_inside(expanded, &path.field("subPathExpr"), problems);
}

fn check_propagation(mount: &Value, privileged: bool, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field("mountPropagation");
    match mount["mountPropagation"].as_str() {
        Some("Bidirectional") if !privileged => {
            let detail =
                "Bidirectional mount propagation is available only to privileged containers";
            problems.forbidden(path, detail);
        }
        Some(other) if !PROPAGATIONS.contains(&other) => {
            problems.not_supported(path, other, &PROPAGATIONS);
        }
        _ => {}
    }
}

/// Only read-only mounts may set `recursiveReadOnly`.
fn check_depth(mount: &Value, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field("recursiveReadOnly");
    match mount["recursiveReadOnly"].as_str() {
        Some("Enabled" | "IfPossible") => {
            if !flag(mount, "readOnly") {
                problems.forbidden(path, "may only be specified when readOnly is true");
            }
            if !matches!(mount["mountPropagation"].as_str(), None | Some("None")) {
                let detail = "may only be specified when mountPropagation is None or not specified";
                problems.forbidden(path, detail);
            }
        }
        Some(other) if !DEPTHS.contains(&other) => problems.not_supported(path, other, &DEPTHS),
        _ => {}
    }
}

fn check_devices(
    container: &Value,
    volumes: &ValidVolumes<'_>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let mounts = uses(container, "volumeMounts", "name");
    let mount_places = uses(container, "volumeMounts", "mountPath");
    let (mut names, mut places) = (HashSet::new(), HashSet::new());
    for (index, device) in list(container, "volumeDevices").iter().enumerate() {
        let path = path.index(index);
        let (at, name) = (path.field("name"), text(device, "name"));
        if name.is_empty() {
            problems.required(at, "");
        } else if !names.insert(name) {
            problems.invalid(at, name, "must be unique");
        }
        check_device_volume(name, volumes, &at, problems);
        let place = text(device, "devicePath");
        check_device_place(place, &mut places, &path.field("devicePath"), problems);
        if mounts.contains(name) {
            problems.invalid(at, name, "must not already exist in volumeMounts");
        }
        if mount_places.contains(place) {
            let detail = "must not already exist as a path in volumeMounts";
            problems.invalid(path.field("devicePath"), place, detail);
        }
    }
}

/// Only a claim can be used as a block device.
fn check_device_volume(
    name: &str,
    volumes: &ValidVolumes<'_>,
    at: &Path<'_>,
    problems: &mut Problems,
) {
    match volumes.get(name) {
        None => not_found(at, name, problems),
        Some(volume)
            if !is_set(volume, "persistentVolumeClaim") && !is_set(volume, "ephemeral") =>
        {
            let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
            problems.invalid(at, name, detail);
        }
        Some(_) => {}
    }
}

fn check_device_place<'a>(
    place: &'a str,
    places: &mut HashSet<&'a str>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if place.is_empty() {
        problems.required(path, "");
    }
    if places.contains(place) {
        problems.invalid(path, place, "must be unique");
    }
    if leads_back(place) {
        problems.invalid(path, place, "can not contain backsteps ('..')");
    } else {
        places.insert(place);
    }
}
