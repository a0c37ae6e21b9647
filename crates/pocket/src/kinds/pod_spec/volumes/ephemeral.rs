//! Rules on a volume that lives as long as its pod: a claim that is made for it.

use serde_json::Value;

use crate::{
    kinds::{
        field_rules::{obeys, one_of},
        fields::{is_set, list, text},
        label_selector,
        metadata::validate_template_metadata,
        names,
        path::Path,
        resources::quantity,
    },
    quantity::Quantity,
    status::Problems,
};

const MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

/// Of metadata, only what is copied to the claim may be said.
const COPIED: [&str; 2] = ["labels", "annotations"];

pub(super) fn check(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field("volumeClaimTemplate");
    if !is_set(source, "volumeClaimTemplate") {
        problems.required(path, "");
        return;
    }
    let template = &source["volumeClaimTemplate"];
    let metadata = path.field("metadata");
    validate_template_metadata(&template["metadata"], &metadata.to_string(), problems);
    let said = template["metadata"].as_object().into_iter().flatten();
    for (field, _) in
        said.filter(|(field, value)| !COPIED.contains(&field.as_str()) && !value.is_null())
    {
        problems.forbidden(metadata.field(field), "cannot be set");
    }
    check_claim(&template["spec"], &path.field("spec"), problems);
}

fn check_claim(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let modes = path.field("accessModes");
    if list(spec, "accessModes").is_empty() {
        problems.required(modes, "at least 1 access mode is required");
    }
    label_selector::validate(&spec["selector"], &path.field("selector"), problems);
    for mode in list(spec, "accessModes").iter().filter_map(Value::as_str) {
        if !MODES.contains(&mode) {
            problems.not_supported(modes, mode, &MODES);
        }
    }
    let storage = &spec["resources"]["requests"]["storage"];
    let place = path.field("resources");
    let place = place.key("storage");
    if storage.is_null() {
        problems.required(place, "");
    } else if quantity(storage).is_some_and(|amount: Quantity| amount.is_zero()) {
        problems.invalid(place, storage.clone(), "must be greater than zero");
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        let place = path.field("storageClassName");
        obeys(names::subdomain, class, &place, problems);
    }
    one_of(&["Block", "Filesystem"], spec, path, "volumeMode", problems);
}
