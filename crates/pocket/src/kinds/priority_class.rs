//! PriorityClass (scheduling.k8s.io/v1).

use serde_json::Value;

use super::{
    Cluster, Rules, Traits,
    field_rules::immutable,
    fields::{fill, filled, flag, number, set, text},
    path::Path,
};
use crate::status::{ApiError, Problems};

const MAX_USER_PRIORITY: i64 = 1_000_000_000;

/// The system classes; their name prefix is reserved.
const SYSTEM_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-cluster-critical",
        2_000_000_000,
        "For pods the cluster cannot do without; they may run on any node.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "For pods a node cannot do without; they have to run on that node.",
    ),
];

/// The bucket of priority classes in the store.
pub const PRIORITY_CLASSES: &str = "scheduling.k8s.io/priorityclasses";

/// The system classes, as they are created.
pub fn system_classes() -> [Value; 2] {
    SYSTEM_CLASSES.map(|(name, value, description)| {
        serde_json::json!({"metadata": {"name": name}, "value": value, "description": description})
    })
}

pub(super) const RULES: Rules = Rules {
    default: |object| {
        fill(object, "value", 0);
        fill(object, "preemptionPolicy", "PreemptLowerPriority");
    },
    // The generation is always 1: the kind has the field, but nothing increments it.
    prepare_create: |object, _| set_generation(object, Value::from(1)),
    prepare_update: |new, old| set_generation(new, old["metadata"]["generation"].clone()),
    validate,
    validate_update: |new, old, problems| {
        if number(new, "value") != number(old, "value") {
            problems.forbidden("value", "may not be changed in an update.");
        }
        immutable(new, old, &Path::Root, "preemptionPolicy", problems);
    },
    admit: Some(admit),
    traits: Traits {
        status: false,
        exclusive: true,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn set_generation(object: &mut Value, generation: Value) {
    if !generation.is_null()
        && let Some(metadata) = filled(object, "metadata")
    {
        set(metadata, "generation", generation);
    }
}

fn validate(object: &Value, problems: &mut Problems) {
    let name = text(&object["metadata"], "name");
    let value = number(object, "value");
    if name.starts_with("system-") {
        if let Some(why) = system_complaint(name, value, flag(object, "globalDefault")) {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            );
            problems.forbidden("metadata.name", detail);
        }
    } else if value > MAX_USER_PRIORITY {
        let detail =
            format!("maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}");
        problems.forbidden("value", detail);
    }
}

fn system_complaint(name: &str, value: i64, global: bool) -> Option<String> {
    let Some((_, known, _)) = SYSTEM_CLASSES.iter().find(|(known, ..)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if value != *known {
        return Some(format!("value of {name} PriorityClass must be {known}"));
    }
    global.then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

/// Pods without a class get the global default, so there can be only one.
fn admit(new: &mut Value, _: Option<&Value>, cluster: &dyn Cluster) -> Result<(), ApiError> {
    const GROUP: &str = "scheduling.k8s.io";
    if !flag(new, "globalDefault") {
        return Ok(());
    }
    let name = text(&new["metadata"], "name");
    let all = cluster.list(GROUP, "priorityclasses", "");
    let other = all
        .iter()
        .find(|class| flag(class, "globalDefault") && text(&class["metadata"], "name") != name);
    let Some(other) = other else {
        return Ok(());
    };
    let other = text(&other["metadata"], "name");
    let why =
        format!("PriorityClass {other} is already marked as default. Only one default can exist");
    Err(ApiError::forbidden(GROUP, "priorityclasses", name, &why))
}
