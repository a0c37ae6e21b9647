//! All validation of one object, in the order in which the API reports errors.
//!
//! The generic machine calls these functions and not the single rules, so that no kind can forget
//! the shared ones.

use serde_json::Value;

use super::{
    Rules,
    enums::check_enums,
    metadata::{
        validate_changed_metadata, validate_finalizer_domains, validate_metadata,
        validate_metadata_update,
    },
    required::check_required,
};
use crate::{schema::Schema, status::Problems};

/// Fields that kinds validate as a whole, because their errors have details or a position that no
/// schema tells. Each name means the same wherever it is.
pub(super) const JUDGED_BY_KINDS: [&str; 33] = [
    "affinity",
    "claims",
    "dnsConfig",
    "dnsPolicy",
    "env",
    "envFrom",
    "group",
    "hostAliases",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "matchExpressions",
    "metrics",
    "names",
    "ownerReferences",
    "preemptionPolicy",
    "readinessGates",
    "readinessProbe",
    "resizePolicy",
    "resourceClaims",
    "restartPolicy",
    "restartPolicyRules",
    "schedulingGates",
    "securityContext",
    "startupProbe",
    "strategy",
    "taints",
    "terminationMessagePolicy",
    "tolerations",
    "topologySpreadConstraints",
    "volumeDevices",
    "volumeMounts",
    "volumes",
];

/// Validates the object alone; on create and on update.
pub fn validate_object(
    rules: &Rules,
    schema: Schema<'_>,
    namespaced: bool,
    object: &Value,
    problems: &mut Problems,
) {
    validate_metadata(object, rules.traits.name, namespaced, problems);
    if !rules.traits.plain_finalizers {
        validate_finalizer_domains(object, problems);
    }
    validate_rest(rules, schema, object, problems);
    (rules.validate_create)(object, problems);
}

fn validate_rest(rules: &Rules, schema: Schema<'_>, object: &Value, problems: &mut Problems) {
    check_required(object, schema, problems);
    if !rules.traits.judges_enums {
        check_enums(object, schema, problems);
    }
    (rules.validate)(object, problems);
}

/// Validates an update: the object alone, and the change.
pub fn validate_change(
    rules: &Rules,
    schema: Schema<'_>,
    namespaced: bool,
    (new, old): (&Value, &Value),
    problems: &mut Problems,
) {
    validate_changed_metadata(new, old, namespaced, problems);
    if !rules.traits.metadata_change_last {
        validate_metadata_change(rules, (new, old), problems);
    }
    if rules.traits.change_first {
        (rules.validate_update)(new, old, problems);
    }
    if rules.traits.checks_metadata_again {
        validate_metadata(new, rules.traits.name, namespaced, problems);
        if !rules.traits.plain_finalizers {
            validate_finalizer_domains(new, problems);
        }
    }
    validate_rest(rules, schema, new, problems);
    if !rules.traits.change_first {
        (rules.validate_update)(new, old, problems);
    }
    if rules.traits.metadata_change_last {
        validate_metadata_change(rules, (new, old), problems);
    }
}

fn validate_metadata_change(rules: &Rules, (new, old): (&Value, &Value), problems: &mut Problems) {
    validate_metadata_update(new, old, problems);
    if !rules.traits.plain_finalizers {
        validate_finalizer_domains(new, problems);
    }
}
