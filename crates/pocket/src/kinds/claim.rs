//! PersistentVolumeClaims.

use serde_json::{Value, json};

use super::{
    Cluster, Rules, Traits, WriteContext,
    field_rules::obeys,
    fields::{fill, filled, flag, is_empty, is_set, list, set, take, text},
    label_selector, names,
    path::Path,
    protection::CLAIM_FINALIZER,
    resources::quantity,
    volume::{check_access_modes, protect},
};
use crate::status::{ApiError, Problems};

const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

pub(super) const RULES: Rules = Rules {
    default: |claim| {
        if let Some(spec) = filled(claim, "spec") {
            default_claim_spec(spec);
            pair_sources(spec);
        }
    },
    prepare_create,
    validate: |claim, problems| {
        let (spec, path) = (&claim["spec"], Path::At("spec"));
        check_access_modes(spec, &path, problems);
        check_storage(spec, &path, problems);
    },
    validate_update,
    admit: Some(admit),
    traits: Traits {
        delete_returns_object: true,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

/// Fills the spec of a claim; also of claim templates in pods and StatefulSets.
pub fn default_claim_spec(spec: &mut Value) {
    if !is_set(spec, "volumeMode") {
        set(spec, "volumeMode", "Filesystem");
    }
    filled(spec, "resources");
}

/// Copies `dataSource` and `dataSourceRef` into each other: the newer field can express everything
/// the older can.
fn pair_sources(spec: &mut Value) {
    if is_set(spec, "dataSource") {
        let source = spec["dataSource"].clone();
        fill(spec, "dataSourceRef", source);
    } else if is_set(spec, "dataSourceRef") && text(&spec["dataSourceRef"], "namespace").is_empty()
    {
        let source = spec["dataSourceRef"].clone();
        set(spec, "dataSource", source);
    }
}

fn prepare_create(claim: &mut Value, _: &WriteContext) {
    set(claim, "status", json!({"phase": "Pending"}));
    protect(claim, CLAIM_FINALIZER);
}

/// Validates the spec of a claim inside a pod, which no schema checks; `path` is its field path.
pub(super) fn check_claim_spec(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    label_selector::validate(&spec["selector"], &path.field("selector"), problems);
    check_access_modes(spec, path, problems);
    let modes = [
        "ReadOnlyMany",
        "ReadWriteMany",
        "ReadWriteOnce",
        "ReadWriteOncePod",
    ];
    for mode in list(spec, "accessModes") {
        let mode = mode.as_str().unwrap_or_default();
        if !modes.contains(&mode) {
            problems.not_supported(path.field("accessModes"), mode, &modes);
        }
    }
    check_storage(spec, path, problems);
    for field in ["storageClassName", "volumeAttributesClassName"] {
        let name = text(spec, field);
        if !name.is_empty() {
            obeys(names::subdomain, name, &path.field(field), problems);
        }
    }
    let modes = ["Block", "Filesystem"];
    if let Some(mode) = spec["volumeMode"]
        .as_str()
        .filter(|mode| !modes.contains(mode))
    {
        problems.not_supported(path.field("volumeMode"), mode, &modes);
    }
    check_data_sources(spec, path, problems);
}

/// Validates the requested storage; errors are reported without `requests` in the path.
fn check_storage(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let storage = &spec["resources"]["requests"]["storage"];
    let place = path.field("resources");
    let place = place.key("storage");
    if storage.is_null() {
        problems.required(place, "");
    } else if quantity(storage).is_some_and(|storage| storage.is_zero() || storage.is_negative()) {
        problems.invalid(place, storage.clone(), "must be greater than zero");
    }
}

fn check_data_sources(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    for field in ["dataSource", "dataSourceRef"] {
        let source = &spec[field];
        if source.is_null() {
            continue;
        }
        let path = path.field(field);
        for field in ["name", "kind"] {
            if text(source, field).is_empty() {
                problems.required(path.field(field), "");
            }
        }
        let (group, kind) = (text(source, "apiGroup"), text(source, "kind"));
        if group.is_empty() {
            if kind != "PersistentVolumeClaim" {
                let detail =
                    "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
                problems.invalid(path, kind, detail);
            }
        } else {
            obeys(names::subdomain, group, &path.field("apiGroup"), problems);
        }
        let namespace = text(source, "namespace");
        if !namespace.is_empty() {
            obeys(names::label, namespace, &path.field("namespace"), problems);
        }
    }
    check_same_source(spec, path, problems);
}

/// Checks that the two fields agree, unless the newer says what the older cannot.
fn check_same_source(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let (old, new) = (&spec["dataSource"], &spec["dataSourceRef"]);
    let detail = if old.is_null() || new.is_null() {
        return;
    } else if !text(new, "namespace").is_empty() {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if ["apiGroup", "kind", "name"]
        .iter()
        .any(|field| text(old, field) != text(new, field))
    {
        "must match dataSourceRef"
    } else {
        return;
    };
    problems.invalid(path, json!({}), detail);
}

fn storage(claim: &Value) -> &Value {
    &claim["spec"]["resources"]["requests"]["storage"]
}

/// A bound claim may request more, an unbound one may be bound; nothing else changes.
fn validate_update(new: &Value, old: &Value, problems: &mut Problems) {
    if new["spec"] == old["spec"] {
        return;
    }
    let bound = text(&old["status"], "phase") == "Bound";
    let mut changed = new["spec"].clone();
    let before = &old["spec"];
    let mut free = Vec::new();
    if is_empty(before.get("volumeName")) {
        free.push("volumeName");
    }
    // A class may be filled in later, when one becomes the default.
    if !is_set(before, "storageClassName") && is_empty(before.get("volumeName")) {
        free.push("storageClassName");
    }
    if bound {
        free.push("volumeAttributesClassName");
        if let Some(requests) =
            filled(&mut changed, "resources").and_then(|r| filled(r, "requests"))
        {
            set(requests, "storage", storage(old).clone());
        }
    }
    for field in free {
        match before.get(field) {
            Some(value) => set(&mut changed, field, value.clone()),
            None => {
                take(&mut changed, field);
            }
        }
    }
    if changed != *before {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        problems.forbidden("spec", detail);
    }
    let held = quantity(&old["status"]["capacity"]["storage"]).or_else(|| quantity(storage(old)));
    if bound && quantity(storage(new)) < held {
        let path = "spec.resources.requests.storage";
        problems.forbidden(path, "field can not be less than status.capacity");
    }
}

fn admit(claim: &mut Value, old: Option<&Value>, cluster: &dyn Cluster) -> Result<(), ApiError> {
    match old {
        None => {
            take_default_class(claim, cluster);
            Ok(())
        }
        Some(old) => check_growth(claim, old, cluster),
    }
}

fn take_default_class(claim: &mut Value, cluster: &dyn Cluster) {
    if is_set(&claim["spec"], "storageClassName") {
        return;
    }
    let classes = cluster.list("storage.k8s.io", "storageclasses", "");
    let marked = classes
        .iter()
        .map(|class| &class["metadata"])
        .filter(|metadata| text(&metadata["annotations"], DEFAULT_CLASS) == "true");
    // The newest wins, so that replacing a default takes effect at once.
    let newest = marked.max_by_key(|metadata| text(metadata, "creationTimestamp"));
    if let Some(metadata) = newest
        && let Some(spec) = filled(claim, "spec")
    {
        set(spec, "storageClassName", text(metadata, "name"));
    }
}

fn check_growth(claim: &Value, old: &Value, cluster: &dyn Cluster) -> Result<(), ApiError> {
    if quantity(storage(claim)) <= quantity(storage(old)) {
        return Ok(());
    }
    let class = text(&claim["spec"], "storageClassName");
    let class = cluster.get("storage.k8s.io", "storageclasses", "", class);
    if class.is_some_and(|class| flag(&class, "allowVolumeExpansion")) {
        return Ok(());
    }
    let name = text(&claim["metadata"], "name");
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    Err(ApiError::forbidden("", "persistentvolumeclaims", name, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{OtherObjects, defaulted, errors, update_errors};

    fn claim(storage: &str) -> Value {
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}, "storageClassName": "fast"});
        defaulted(&RULES, &json!({"metadata": {"name": "c"}, "spec": spec}))
    }

    fn bound(storage: &str) -> Value {
        let mut claim = claim(storage);
        claim["spec"]["volumeName"] = json!("v");
        claim["status"] = json!({"phase": "Bound", "capacity": {"storage": storage}});
        claim
    }

    #[test]
    fn a_claim_asks_for_some_storage() {
        assert_eq!(errors(&RULES, &claim("1Gi")), [""; 0]);
        assert_eq!(
            errors(&RULES, &claim("0")),
            ["spec.resources[storage]: Invalid value: \"0\": must be greater than zero"]
        );
        let bare = json!({"spec": {"accessModes": ["ReadWriteOnce"]}});
        assert_eq!(
            errors(&RULES, &bare),
            ["spec.resources[storage]: Required value"]
        );
    }

    #[test]
    fn a_bound_claim_grows_and_does_not_shrink() {
        assert_eq!(update_errors(&RULES, &bound("2Gi"), &bound("1Gi")), [""; 0]);
        assert_eq!(
            update_errors(&RULES, &bound("1Gi"), &bound("2Gi")),
            [
                "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
            ]
        );
        let fixed = "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        assert_eq!(update_errors(&RULES, &claim("2Gi"), &claim("1Gi")), [fixed]);
        let mut other = bound("1Gi");
        other["spec"]["accessModes"] = json!(["ReadOnlyMany"]);
        assert_eq!(update_errors(&RULES, &other, &bound("1Gi")), [fixed]);
    }

    #[test]
    fn an_unbound_claim_can_be_bound() {
        assert_eq!(update_errors(&RULES, &bound("1Gi"), &claim("1Gi")), [""; 0]);
        let mut other = bound("1Gi");
        other["spec"]["volumeName"] = json!("w");
        assert_eq!(update_errors(&RULES, &other, &bound("1Gi")).len(), 1);
    }

    #[test]
    fn growth_needs_a_class_that_allows_it() {
        let class = |allow: bool| {
            (
                "storageclasses",
                json!({"metadata": {"name": "fast"}, "allowVolumeExpansion": allow}),
            )
        };
        for (allow, good) in [(true, true), (false, false)] {
            let others = OtherObjects {
                objects: vec![class(allow)],
                ..OtherObjects::default()
            };
            let admitted = admit(&mut bound("2Gi"), Some(&bound("1Gi")), &others);
            assert_eq!(admitted.is_ok(), good, "{admitted:?}");
        }
    }

    #[test]
    fn the_newest_default_class_is_taken() {
        let class = |name: &str, time: &str| {
            let metadata = json!({"name": name, "creationTimestamp": time, "annotations": {DEFAULT_CLASS: "true"}});
            ("storageclasses", json!({ "metadata": metadata }))
        };
        let others = OtherObjects {
            objects: vec![
                class("old", "2025-01-01T00:00:00Z"),
                class("new", "2026-01-01T00:00:00Z"),
            ],
            ..OtherObjects::default()
        };
        let mut open = claim("1Gi");
        take(&mut open["spec"], "storageClassName");
        admit(&mut open, None, &others).unwrap();
        assert_eq!(open["spec"]["storageClassName"], "new");
        let mut none = claim("1Gi");
        none["spec"]["storageClassName"] = json!("");
        admit(&mut none, None, &others).unwrap();
        assert_eq!(
            none["spec"]["storageClassName"], "",
            "an empty name asks for no class"
        );
    }
}
