//! Claims that get a folder or a volume that somebody made, grow, and are deleted.

use std::path::Path;

use neap_trial::{Deed, Workload};
use neap_world::claim;
use serde_json::{Value, json};

const DATA: &str = "/api/v1/namespaces/default/persistentvolumeclaims/data";
const ARCHIVE: &str = "/api/v1/namespaces/default/persistentvolumeclaims/archive";
/// Nothing is mounted in a trial, so no folder is ever there.
const FOLDER: &str = "/nowhere/volumes";

pub(super) fn workload() -> Workload {
    let by_hand = json!({"storageClassName": "", "resources": size("1Gi")});
    Workload::new("claim")
        .actor("controllers", |site| {
            let folder = Path::new(FOLDER);
            Ok(vec![
                claim::service(site, folder)?,
                claim::volumes(site, folder)?,
            ])
        })
        .step(
            "claim a folder",
            [wanted("data", json!({"resources": size("1Gi")}))],
        )
        .step("let it grow", [Deed::Patch(DATA, grown("2Gi"))])
        .step(
            "claim a volume that is not there",
            [wanted("archive", by_hand)],
        )
        .step("somebody makes it", [volume()])
        .step("delete the folder", [Deed::Delete(DATA)])
        .step("give up the volume", [Deed::Delete(ARCHIVE)])
}

fn wanted(name: &str, mut spec: Value) -> Deed {
    spec["accessModes"] = json!(["ReadWriteOnce"]);
    Deed::Create(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }))
}

fn volume() -> Deed {
    Deed::Create(json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": "shelf"},
        "spec": {
            "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/srv/shelf"}, "persistentVolumeReclaimPolicy": "Retain",
        },
    }))
}

fn size(storage: &str) -> Value {
    json!({"requests": {"storage": storage}})
}

fn grown(storage: &str) -> Value {
    json!({"spec": {"resources": size(storage)}})
}
