//! Which volume is chosen, and what becomes of it: by tables.

use std::{path::Path, sync::Arc};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{
    claim::{
        fit::choose,
        reclaim::{Fate, fate},
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
fn the_smallest_volume_that_fits_is_chosen() {
    let kept = json!({"claimRef": {"name": "data", "namespace": "shop"}});
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
    for (asked, expected) in [
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
        let chosen = choose(&claim(asked.clone()), &volumes).map(ResourceExt::name_any);
        assert_eq!(chosen.as_deref(), expected, "{asked}");
    }
    let with_kept: Vec<_> = volumes
        .into_iter()
        .chain([Arc::new(volume("z-kept", "30Gi", kept))])
        .collect();
    let chosen = choose(&claim(json!({})), &with_kept).unwrap();
    assert_eq!(chosen.name_any(), "z-kept");
}

/// What becomes of a volume in words.
fn told(fate: &Fate) -> String {
    match fate {
        Fate::Stays => "stays".to_owned(),
        Fate::Free(volume) => format!("free {}", volume.spec.as_ref().unwrap().claim_ref.is_none()),
        Fate::Remove(folder) => format!("remove {folder:?}"),
        Fate::Report(volume) => volume.status.clone().unwrap().phase.unwrap(),
    }
}

#[test]
fn a_volume_goes_with_its_claim_only_if_it_was_made_for_it() {
    let ours = json!({"pv.kubernetes.io/provisioned-by": "neaptide.dev/folder"});
    let chosen = json!({"pv.kubernetes.io/bound-by-controller": "yes"});
    let bound = |name: &str| Some(claim(json!({"volumeName": name})));
    let gone = || None;
    for (claim, notes, path, phase, policy, expected) in [
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
        volume.metadata.annotations = serde_json::from_value(notes.clone()).unwrap();
        volume.status = serde_json::from_value(json!({"phase": phase})).unwrap();
        let fate = fate(&volume, claim.as_ref(), Path::new("/all"));
        assert_eq!(told(&fate), expected, "{notes} {path} {phase} {policy}");
    }
    let other = claim(json!({"volumeName": "v"}));
    let reference = json!({"name": "data", "namespace": "shop", "uid": "before"});
    let volume = volume("v", "1Gi", json!({"claimRef": reference}));
    assert_eq!(
        told(&fate(&volume, Some(&other), Path::new("/all"))),
        "Released"
    );
}
