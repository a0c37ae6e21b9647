//! StorageClass (storage.k8s.io/v1).

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Rules, Traits,
    field_rules::{immutable, obeys},
    fields::{entries, fill, list, text},
    names,
    path::Path,
};
use crate::status::Problems;

const MAX_PARAMETERS: usize = 512;
const MAX_PARAMETERS_BYTES: usize = 256 * 1024;

pub(super) const RULES: Rules = Rules {
    default: |object| {
        fill(object, "reclaimPolicy", "Delete");
        fill(object, "volumeBindingMode", "Immediate");
    },
    validate,
    validate_update: |new, old, problems| {
        for key in ["parameters", "provisioner", "reclaimPolicy"] {
            if new[key] != old[key] {
                problems.forbidden(key, format!("updates to {key} are forbidden."));
            }
        }
        immutable(new, old, &Path::Root, "volumeBindingMode", problems);
    },
    traits: Traits {
        delete_returns_object: true,
        status: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn validate(object: &Value, problems: &mut Problems) {
    let provisioner = text(object, "provisioner");
    if !provisioner.is_empty() {
        let lower = provisioner.to_lowercase();
        obeys(names::qualified, &lower, &Path::At("provisioner"), problems);
    }
    let policy = text(object, "reclaimPolicy");
    if policy == "Recycle" {
        problems.not_supported("reclaimPolicy", policy, &["Delete", "Retain"]);
    }
    validate_parameters(object, problems);
    validate_topologies(object, problems);
}

fn validate_parameters(object: &Value, problems: &mut Problems) {
    let mut count = 0;
    let mut size = 0;
    for (key, value) in entries(object, "parameters") {
        count += 1;
        size += key.len() + value.as_str().map_or(0, str::len);
        if key.is_empty() {
            problems.invalid("parameters", key.as_str(), "field can not be empty.");
        }
    }
    if count > MAX_PARAMETERS {
        let path = "parameters.Provisioner.Parameters";
        problems.too_long(path, MAX_PARAMETERS);
    }
    if size > MAX_PARAMETERS_BYTES {
        problems.too_long("parameters", MAX_PARAMETERS_BYTES);
    }
}

fn validate_topologies(object: &Value, problems: &mut Problems) {
    let path = Path::At("allowedTopologies");
    for (i, term) in list(object, "allowedTopologies").iter().enumerate() {
        let path = path.index(i);
        let path = path.field("matchLabelExpressions");
        let mut keys = HashSet::new();
        for (j, requirement) in list(term, "matchLabelExpressions").iter().enumerate() {
            let key = text(requirement, "key");
            let path = path.index(j);
            if !keys.insert(key) {
                problems.duplicate(path.field("key"), key);
            }
            if !key.is_empty() {
                obeys(names::qualified, key, &path.field("key"), problems);
            }
        }
    }
}
