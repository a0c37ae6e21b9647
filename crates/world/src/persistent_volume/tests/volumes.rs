//! Table tests of the choice of volumes and of reclaim.

use std::{path::Path, sync::Arc};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{
    persistent_volume::{
        matching::best_match,
        reclaim::{VolumeAction, volume_action},
    },
    stage::fields,
};

fn claim(more: Value) -> PersistentVolumeClaim {
    let mut spec =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}});
    spec.as_object_mut().unwrap().extend(fields(more));
    let metadata = json!({"name": "data", "namespace": "shop", "uid": "1"});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

fn volume(name: &str, size: &str, more: Value) -> PersistentVolume {
    let mut spec =
        json!({"accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "capacity": {"storage": size}});
    spec.as_object_mut().unwrap().extend(fields(more));
    let metadata = json!({"name": name, "labels": {"size": size}});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

#[test]
fn the_smallest_matching_volume_is_chosen() {
    let reserved = json!({"claimRef": {"name": "data", "namespace": "shop"}});
    let taken = json!({"claimRef": {"name": "data", "namespace": "other", "uid": "2"}});
    let volumes = vec![
        volume("a-small", "1Gi", json!({})),
        volume("b-large", "9Gi", json!({})),
        volume("c-next", "3Gi", json!({})),
        volume("d-taken", "2Gi", taken),
        volume("e-fast", "2Gi", json!({"storageClassName": "fast"})),
        volume("f-block", "2Gi", json!({"volumeMode": "Block"})),
        volume("g-many", "20Gi", json!({"accessModes": ["ReadWriteMany"]})),
    ];
    let volumes: Vec<_> = volumes.into_iter().map(Arc::new).collect();
    for (spec, expected) in [
        (json!({}), Some("c-next")),
        (json!({"storageClassName": "fast"}), Some("e-fast")),
        (json!({"volumeMode": "Block"}), Some("f-block")),
        (json!({"accessModes": ["ReadWriteMany"]}), Some("g-many")),
        (
            json!({"accessModes": ["ReadWriteMany", "ReadWriteOnce"]}),
            None,
        ),
        (
            json!({"selector": {"matchLabels": {"size": "9Gi"}}}),
            Some("b-large"),
        ),
        (
            json!({"resources": {"requests": {"storage": "21Gi"}}}),
            None,
        ),
    ] {
        let chosen = best_match(&claim(spec.clone()), &volumes).map(ResourceExt::name_any);
        assert_eq!(chosen.as_deref(), expected, "{spec}");
    }
    let with_reserved: Vec<_> = volumes
        .into_iter()
        .chain([Arc::new(volume("z-reserved", "30Gi", reserved))])
        .collect();
    let chosen = best_match(&claim(json!({})), &with_reserved).unwrap();
    assert_eq!(chosen.name_any(), "z-reserved");
}

/// The action as text.
fn describe(action: &VolumeAction) -> String {
    match action {
        VolumeAction::Nothing => "stays".to_owned(),
        VolumeAction::ClearReference(volume) => {
            format!("free {}", volume.spec.as_ref().unwrap().claim_ref.is_none())
        }
        VolumeAction::Delete(folder) => format!("remove {folder:?}"),
        VolumeAction::UpdateStatus(volume) => volume.status.clone().unwrap().phase.unwrap(),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn only_a_provisioned_volume_is_deleted_with_its_claim() {
    let ours = json!({"pv.kubernetes.io/provisioned-by": "neaptide.dev/folder"});
    let chosen = json!({"pv.kubernetes.io/bound-by-controller": "yes"});
    let bound = |name: &str| Some(claim(json!({"volumeName": name})));
    let gone = || None;
    for (claim, annotations, path, phase, policy, expected) in [
        (bound("v"), &ours, "/all/v", "Pending", "Delete", "Bound"),
        (bound("v"), &ours, "/all/v", "Bound", "Delete", "stays"),
        (bound(""), &ours, "/all/v", "Pending", "Delete", "stays"),
        (
            bound("w"),
            &ours,
            "/all/v",
            "Pending",
            "Delete",
            "remove Some(\"/all/v\")",
        ),
        (
            bound("w"),
            &chosen,
            "/srv/v",
            "Bound",
            "Retain",
            "free true",
        ),
        (
            bound("w"),
            &json!({}),
            "/srv/v",
            "Bound",
            "Retain",
            "free false",
        ),
        (gone(), &ours, "/all/v", "Bound", "Delete", "Released"),
        (
            gone(),
            &ours,
            "/all/v",
            "Released",
            "Delete",
            "remove Some(\"/all/v\")",
        ),
        (gone(), &ours, "/all/v", "Released", "Retain", "stays"),
        (gone(), &ours, "/all", "Released", "Delete", "Failed"),
        (gone(), &chosen, "/all/v", "Released", "Delete", "Failed"),
    ] {
        let reference = json!({"name": "data", "namespace": "shop", "uid": "1"});
        let spec = json!({"claimRef": reference, "hostPath": {"path": path}, "persistentVolumeReclaimPolicy": policy});
        let mut volume = volume("v", "1Gi", spec);
        volume.metadata.annotations = serde_json::from_value(annotations.clone()).unwrap();
        volume.status = serde_json::from_value(json!({"phase": phase})).unwrap();
        let action = volume_action(&volume, claim.as_ref(), Path::new("/all"));
        assert_eq!(
            describe(&action),
            expected,
            "{annotations} {path} {phase} {policy}"
        );
    }
    let other = claim(json!({"volumeName": "v"}));
    let reference = json!({"name": "data", "namespace": "shop", "uid": "before"});
    let volume = volume("v", "1Gi", json!({"claimRef": reference}));
    assert_eq!(
        describe(&volume_action(&volume, Some(&other), Path::new("/all"))),
        "Released"
    );
}
