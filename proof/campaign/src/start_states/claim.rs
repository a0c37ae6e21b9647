//! Claims that are half bound: to volumes that are provisioned, chosen, taken, released, or
//! foreign.

use neap_trial::{
    Workload,
    generate::SeededRng,
    start_states::{StartState, StartStates},
};
use serde_json::{Value, json};

use super::parts::{happens, path, with_status};

pub(super) fn start_states(workload: Workload) -> StartStates {
    StartStates::new(workload, make).counting(|place, object| {
        forget_version(object);
        Some(place.to_owned())
    })
}

const FOLDER: &str = "/nowhere/volumes";

fn make(rng: &mut SeededRng) -> StartState {
    let mut declared = Vec::new();
    let mut leftovers = Vec::new();
    for number in 0..=rng.below(2) {
        let name = format!("data-{number}");
        let mut claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        });
        // A volume is provisioned once the class of its claim is known.
        let begun = happens(rng, 60);
        if begun || happens(rng, 30) {
            claim["spec"]["storageClassName"] = "standard".into();
        }
        declared.push(claim.clone());
        if begun {
            leftovers.push(made(rng, &name));
        }
        if happens(rng, 30) {
            leftovers.push(with_status(&claim, &json!({"phase": "Pending"})));
        }
    }
    if happens(rng, 40) {
        leftovers.push(left(rng));
    }
    if happens(rng, 40) {
        leftovers.push(taken());
    }
    StartState {
        declared,
        leftovers,
    }
}

fn volume(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": "neaptide.dev/folder"}},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": format!("{FOLDER}/{name}"), "type": "DirectoryOrCreate"},
            "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "standard",
        },
    })
}

/// Provisioned for a claim, which does not refer to it yet.
fn made(rng: &mut SeededRng, claim: &str) -> Value {
    let uid = format!("@{}", path("v1", "persistentvolumeclaims", claim));
    let mut volume = volume(&format!("pvc-{uid}"));
    volume["spec"]["claimRef"] = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "namespace": "default", "name": claim, "uid": uid,
    });
    if happens(rng, 40) {
        let phase = ["Pending", "Available", "Bound"][rng.below(3)];
        volume["status"] = json!({"phase": phase});
    }
    volume
}

/// Provisioned for a claim that no longer exists.
fn left(rng: &mut SeededRng) -> Value {
    let uid = "00000000-0000-0000-0000-000000000001";
    let mut volume = volume(&format!("pvc-{uid}"));
    volume["spec"]["claimRef"] = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "namespace": "default", "name": "gone", "uid": uid,
    });
    let phase = ["Pending", "Bound", "Released"][rng.below(3)];
    volume["status"] = json!({"phase": phase});
    volume
}

/// Reserved for a claim that does not exist yet.
fn taken() -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": "foreign-shelf"},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/srv/foreign"}, "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "standard",
            "claimRef": {"namespace": "default", "name": "later"},
        },
    })
}

/// The claim's version in a volume depends on who created the volume.
fn forget_version(volume: &mut Value) {
    let claim = volume.pointer_mut("/spec/claimRef");
    if let Some(claim) = claim.and_then(Value::as_object_mut) {
        claim.remove("resourceVersion");
    }
}
