//! Validation of the volumes of a pod: their names, and that each has one source.

mod claims;
mod files;
mod sources;

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    kinds::{
        fields::{is_set, list, text},
        names,
        path::Path,
    },
    status::Problems,
};

/// Valid volumes, by name: others cannot be mounted.
pub(super) type ValidVolumes<'a> = HashMap<&'a str, &'a Value>;

/// Sources in the order in which they are checked, each with the message for an additional one.
const SOURCES: [(&str, &str); 30] = [
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

/// Validates all volumes of a spec; `pod` is the name of the pod, which templates do not have.
pub(super) fn check<'a>(
    spec: &'a Value,
    pod: Option<&str>,
    path: &Path<'_>,
    problems: &mut Problems,
) -> ValidVolumes<'a> {
    let path = path.field("volumes");
    let mut sound = ValidVolumes::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = path.index(index);
        let (before, name) = (problems.len(), text(volume, "name"));
        check_source(volume, pod, &path, problems);
        if name.is_empty() {
            problems.required(path.field("name"), "");
        } else {
            for complaint in names::label(name) {
                problems.invalid(path.field("name"), name, complaint);
            }
        }
        if sound.contains_key(name) {
            problems.duplicate(path.field("name"), name);
        }
        if problems.len() == before {
            sound.insert(name, volume);
        }
    }
    sound
}

/// Validates the first source only.
fn check_source(volume: &Value, pod: Option<&str>, path: &Path<'_>, problems: &mut Problems) {
    let mut given = SOURCES.iter().filter(|(field, _)| is_set(volume, field));
    let Some((first, _)) = given.next() else {
        problems.required(path, "must specify a volume type");
        return;
    };
    sources::check(first, &volume[*first], path, problems);
    match *first {
        "ephemeral" => claims::check(volume, pod, path, problems),
        // A template may leave it empty: the creator of the pod fills it.
        "image" if pod.is_some() && text(&volume["image"], "reference").is_empty() => {
            problems.required(path.field("image").field("reference"), "");
        }
        _ => {}
    }
    for (_, shown) in given {
        let detail = "may not specify more than 1 volume type";
        problems.forbidden(path.field(shown), detail);
    }
}

/// Validates a path inside the volume: relative, and without `..`.
pub(super) fn check_inside(place: &str, path: &Path<'_>, problems: &mut Problems) {
    if place.starts_with('/') {
        problems.invalid(path, place, "must be a relative path");
    }
    check_no_backsteps(place, path, problems);
}

pub(super) fn check_no_backsteps(place: &str, path: &Path<'_>, problems: &mut Problems) {
    if leads_back(place) {
        problems.invalid(path, place, "must not contain '..'");
    }
}

/// Whether a path contains `..`.
pub(super) fn leads_back(place: &str) -> bool {
    place.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests;
