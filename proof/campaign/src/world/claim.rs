//! Claims that get a provisioned or a manually created volume, grow, and are deleted.

use std::path::Path;

use neap_trial::{UserRequest, Workload};
use neap_world::persistent_volume;
use serde_json::{Value, json};

const DATA: &str = "/api/v1/namespaces/default/persistentvolumeclaims/data";
const ARCHIVE: &str = "/api/v1/namespaces/default/persistentvolumeclaims/archive";
/// Nothing is mounted in a trial, so the folder never exists.
const FOLDER: &str = "/nowhere/volumes";

pub(super) fn workload() -> Workload {
    let by_hand = json!({"storageClassName": "", "resources": size("1Gi")});
    Workload::new("claim")
        .actor("controllers", |context| {
            let folder = Path::new(FOLDER);
            Ok(vec![
                persistent_volume::component(context, folder)?,
                persistent_volume::volume_component(context, folder)?,
            ])
        })
        .step(
            "claim a folder",
            [wanted("data", json!({"resources": size("1Gi")}))],
        )
        .step("let it grow", [UserRequest::Patch(DATA, grown("2Gi"))])
        .step(
            "claim a volume that is not there",
            [wanted("archive", by_hand)],
        )
        .step("a user creates it", [volume()])
        .step("delete the folder", [UserRequest::Delete(DATA)])
        .step("give up the volume", [UserRequest::Delete(ARCHIVE)])
}

fn wanted(name: &str, mut spec: Value) -> UserRequest {
    spec["accessModes"] = json!(["ReadWriteOnce"]);
    UserRequest::Create(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }))
}

fn volume() -> UserRequest {
    UserRequest::Create(json!({
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
