//! Validation of ephemeral volumes, whose claims live as long as their pod.

use serde_json::Value;

use crate::{
    kinds::{
        claim::check_claim_spec,
        fields::{is_set, text},
        metadata::validate_template_metadata,
        names,
        path::Path,
    },
    status::Problems,
};

/// Metadata that only the server sets, and that a template may not have, with its name in messages.
const NOT_SET: [(&str, &str); 12] = [
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];

pub(super) fn check(volume: &Value, pod: Option<&str>, path: &Path<'_>, problems: &mut Problems) {
    let place = path.field("ephemeral");
    let place = place.field("volumeClaimTemplate");
    let template = &volume["ephemeral"]["volumeClaimTemplate"];
    if template.is_null() {
        return;
    }
    let (metadata, at) = (&template["metadata"], place.field("metadata"));
    validate_template_metadata(metadata, &at.to_string(), problems);
    let set = |field: &str| is_set(metadata, field) && metadata[field] != "";
    for (_, shown) in NOT_SET.iter().filter(|(field, _)| set(field)) {
        problems.forbidden(at.field(shown), "cannot be set");
    }
    if metadata["generation"].as_i64().unwrap_or_default() != 0 {
        problems.forbidden(at.field("generation"), "cannot be set");
    }
    check_claim_spec(&template["spec"], &place.field("spec"), problems);
    let name = text(volume, "name");
    let owner = pod.filter(|owner| !owner.is_empty() && !name.is_empty());
    if let Some(owner) = owner {
        let claim = format!("{owner}-{name}");
        for complaint in names::subdomain(&claim) {
            let detail = format!("PVC name \"{claim}\": {complaint}");
            problems.invalid(path.field("name"), name, detail);
        }
    }
}
