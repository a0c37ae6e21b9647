//! Claims that are half bound: to volumes that are made, chosen, taken, left, or another's.

use neap_trial::{
    Workload,
    generate::Chance,
    starts::{Start, Starts},
};
use serde_json::{Value, json};

use super::parts::{happens, path, said};

pub(super) fn starts(workload: Workload) -> Starts {
    Starts::new(workload, make).counting(|place, object| {
        forget_version(object);
        Some(place.to_owned())
    })
}

const FOLDER: &str = "/nowhere/volumes";

fn make(chance: &mut Chance) -> Start {
    let mut declared = Vec::new();
    let mut remains = Vec::new();
    for number in 0..=chance.below(2) {
        let name = format!("data-{number}");
        let mut claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        });
        // A volume is made for a claim once its class is known.
        let begun = happens(chance, 60);
        if begun || happens(chance, 30) {
            claim["spec"]["storageClassName"] = "standard".into();
        }
        declared.push(claim.clone());
        if begun {
            remains.push(made(chance, &name));
        }
        if happens(chance, 30) {
            remains.push(said(&claim, &json!({"phase": "Pending"})));
        }
    }
    if happens(chance, 40) {
        remains.push(left(chance));
    }
    if happens(chance, 40) {
        remains.push(taken());
    }
    Start { declared, remains }
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

/// Made for a claim, which does not know of it yet.
fn made(chance: &mut Chance, claim: &str) -> Value {
    let uid = format!("@{}", path("v1", "persistentvolumeclaims", claim));
    let mut volume = volume(&format!("pvc-{uid}"));
    volume["spec"]["claimRef"] = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "namespace": "default", "name": claim, "uid": uid,
    });
    if happens(chance, 40) {
        let phase = ["Pending", "Available", "Bound"][chance.below(3)];
        volume["status"] = json!({"phase": phase});
    }
    volume
}

/// Made for a claim that is gone.
fn left(chance: &mut Chance) -> Value {
    let uid = "00000000-0000-0000-0000-000000000001";
    let mut volume = volume(&format!("pvc-{uid}"));
    volume["spec"]["claimRef"] = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "namespace": "default", "name": "gone", "uid": uid,
    });
    let phase = ["Pending", "Bound", "Released"][chance.below(3)];
    volume["status"] = json!({"phase": phase});
    volume
}

/// Somebody keeps it for a claim that is not there yet.
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

/// Which version of a claim a volume was made for depends on who made it.
fn forget_version(volume: &mut Value) {
    let claim = volume.pointer_mut("/spec/claimRef");
    if let Some(claim) = claim.and_then(Value::as_object_mut) {
        claim.remove("resourceVersion");
    }
}
