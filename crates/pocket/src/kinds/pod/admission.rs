//! Admission of new pods: the priority of their class.

use serde_json::Value;

use crate::{
    kinds::{
        Cluster,
        fields::{filled, flag, is_set, list, number, set, text},
    },
    status::{ApiError, Problems},
};

/// Classes that exist in every cluster, for the pods that run it.
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// Validation of new pods alone: they may not have ephemeral containers, nor, with scheduling
/// gates, a node.
pub(super) fn check_new(pod: &Value, problems: &mut Problems) {
    let spec = &pod["spec"];
    if !list(spec, "ephemeralContainers").is_empty() {
        problems.forbidden("spec.ephemeralContainers", "cannot be set on create");
    }
    if !list(spec, "schedulingGates").is_empty() && !text(spec, "nodeName").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        problems.forbidden("spec.nodeName", detail);
    }
}

fn name_of(pod: &Value) -> &str {
    match text(&pod["metadata"], "name") {
        "" => text(&pod["metadata"], "generateName"),
        name => name,
    }
}

fn forbidden(pod: &Value, why: &str) -> ApiError {
    ApiError::forbidden("", "pods", name_of(pod), why)
}

/// The content of a priority class.
struct Priority {
    value: i64,
    preemption: String,
}

/// Gives a pod the priority of its class, or of the default class.
pub fn use_priority(pod: &mut Value, cluster: &dyn Cluster) -> Result<(), ApiError> {
    let spec = &pod["spec"];
    let class = text(spec, "priorityClassName").to_owned();
    let (class, priority) = if class.is_empty() {
        global_default(cluster)
    } else {
        let found = named_class(&class, cluster).ok_or_else(|| {
            forbidden(
                pod,
                &format!("no PriorityClass with name {class} was found"),
            )
        })?;
        (class, found)
    };
    let given = number(spec, "priority");
    if is_set(spec, "priority") && given != priority.value {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
            priority.value
        );
        return Err(forbidden(pod, &why));
    }
    let preemption = text(spec, "preemptionPolicy");
    if is_set(spec, "preemptionPolicy") && preemption != priority.preemption {
        let why = format!(
            "the string value of PreemptionPolicy ({preemption}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
            priority.preemption
        );
        return Err(forbidden(pod, &why));
    }
    let Some(spec) = filled(pod, "spec") else {
        return Ok(());
    };
    if !class.is_empty() {
        set(spec, "priorityClassName", class);
    }
    set(spec, "priority", priority.value);
    set(spec, "preemptionPolicy", priority.preemption);
    Ok(())
}

fn named_class(name: &str, cluster: &dyn Cluster) -> Option<Priority> {
    if let Some(class) = cluster.get("scheduling.k8s.io", "priorityclasses", "", name) {
        return Some(priority_of(&class));
    }
    let (_, value) = SYSTEM_CLASSES
        .into_iter()
        .find(|(known, _)| *known == name)?;
    Some(Priority {
        value,
        preemption: "PreemptLowerPriority".to_owned(),
    })
}

/// The class of pods that name none: the lowest of the global defaults.
fn global_default(cluster: &dyn Cluster) -> (String, Priority) {
    let classes = cluster.list("scheduling.k8s.io", "priorityclasses", "");
    let marked = classes.iter().filter(|class| flag(class, "globalDefault"));
    match marked.min_by_key(|class| number(class, "value")) {
        Some(class) => (
            text(&class["metadata"], "name").to_owned(),
            priority_of(class),
        ),
        None => (String::new(), priority_of(&Value::Null)),
    }
}

fn priority_of(class: &Value) -> Priority {
    let preemption = match text(class, "preemptionPolicy") {
        "" => "PreemptLowerPriority",
        policy => policy,
    };
    Priority {
        value: number(class, "value"),
        preemption: preemption.to_owned(),
    }
}
