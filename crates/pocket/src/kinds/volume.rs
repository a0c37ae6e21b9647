//! PersistentVolumes.

use serde_json::{Value, json};

use super::{
    Rules, Traits, WriteContext,
    fields::{append, entries, fill, filled, is_empty, list, set, text},
    path::Path,
    pod_spec::default_volume_source,
    protection::VOLUME_FINALIZER,
    resources::{check_amounts, quantity},
};
use crate::{environment::rfc3339, quantity::Quantity, status::Problems};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    validate,
    validate_update,
    traits: Traits {
        delete_returns_object: true,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

/// Fields of the spec that are not volume sources.
const NOT_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

fn default(volume: &mut Value) {
    let Some(spec) = filled(volume, "spec") else {
        return;
    };
    fill(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill(spec, "volumeMode", "Filesystem");
    default_volume_source(spec);
}

fn prepare_create(volume: &mut Value, moment: &WriteContext) {
    let status = json!({"phase": "Pending", "lastPhaseTransitionTime": rfc3339(moment.now)});
    set(volume, "status", status);
    protect(volume, VOLUME_FINALIZER);
}

/// Adds the finalizer that protects an object while it is in use.
pub(super) fn protect(object: &mut Value, finalizer: &str) {
    let Some(metadata) = filled(object, "metadata") else {
        return;
    };
    let held = list(metadata, "finalizers");
    if !held.iter().any(|held| held == finalizer) {
        append(metadata, "finalizers", [finalizer.into()]);
    }
}

fn sources(spec: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let fields = spec.as_object().into_iter().flatten();
    fields.filter(|(field, value)| !value.is_null() && !NOT_SOURCES.contains(&field.as_str()))
}

fn validate(volume: &Value, problems: &mut Problems) {
    let spec = &volume["spec"];
    check_access_modes(spec, &Path::At("spec"), problems);
    let path = Path::At("spec");
    if entries(spec, "capacity").next().is_none() {
        problems.required("spec.capacity", "");
    }
    check_amounts(spec, "capacity", &path, problems);
    for (name, amount) in entries(spec, "capacity") {
        if name != "storage" {
            problems.not_supported("spec.capacity", name.as_str(), &["storage"]);
        } else if quantity(amount).is_some_and(Quantity::is_zero) {
            let path = "spec.capacity[storage]";
            problems.invalid(path, amount.clone(), "must be greater than zero");
        }
    }
    if sources(spec).next().is_none() {
        problems.required("spec", "must specify a volume type");
    }
    for (source, _) in sources(spec).skip(1) {
        let detail = "may not specify more than 1 volume type";
        problems.forbidden(path.field(source), detail);
    }
}

/// Validates `accessModes` of volumes and claims.
pub(super) fn check_access_modes(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let modes = list(spec, "accessModes");
    let path = path.field("accessModes");
    if modes.is_empty() {
        problems.required(path, "at least 1 access mode is required");
    } else if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        problems.forbidden(path, detail);
    }
}

fn validate_update(new: &Value, old: &Value, problems: &mut Problems) {
    let (new, old) = (&new["spec"], &old["spec"]);
    if !sources(new).eq(sources(old)) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        problems.forbidden("spec.persistentvolumesource", detail);
    }
    if text(new, "volumeMode") != text(old, "volumeMode") {
        problems.invalid(
            "spec.volumeMode",
            text(new, "volumeMode"),
            "field is immutable",
        );
    }
    let (now, before) = (new.get("nodeAffinity"), old.get("nodeAffinity"));
    if !is_empty(before) && now != before {
        let shown = new["nodeAffinity"].clone();
        problems.invalid("spec.nodeAffinity", shown, "field is immutable");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{defaulted, errors, update_errors};

    #[expect(
        clippy::needless_pass_by_value,
        reason = "cases read better with the literal in place"
    )]
    fn volume(more: Value) -> Value {
        let mut spec = json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        defaulted(&RULES, &json!({ "spec": spec }))
    }

    #[test]
    fn a_volume_is_one_place_of_some_size() {
        assert_eq!(errors(&RULES, &volume(json!({}))), [""; 0]);
        for (more, expected) in [
            (
                json!({"hostPath": null}),
                "spec: Required value: must specify a volume type",
            ),
            (
                json!({"nfs": {"server": "s", "path": "/"}}),
                "spec.nfs: Forbidden: may not specify more than 1 volume type",
            ),
            (json!({"capacity": {}}), "spec.capacity: Required value"),
            (
                json!({"capacity": {"storage": "0"}}),
                "spec.capacity[storage]: Invalid value: \"0\": must be greater than zero",
            ),
            (
                json!({"accessModes": []}),
                "spec.accessModes: Required value: at least 1 access mode is required",
            ),
            (
                json!({"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]}),
                "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
            ),
        ] {
            assert_eq!(errors(&RULES, &volume(more)), [expected]);
        }
    }

    #[test]
    fn the_place_does_not_move_but_the_claim_does() {
        let old = volume(json!({}));
        let claimed = volume(json!({"claimRef": {"name": "c"}, "capacity": {"storage": "2Gi"}}));
        assert_eq!(update_errors(&RULES, &claimed, &old), [""; 0]);
        let moved = volume(json!({"hostPath": {"path": "/y"}, "volumeMode": "Block"}));
        assert_eq!(update_errors(&RULES, &moved, &old).len(), 2);
    }
}
