//! Pods.
//!
//! A pod is what a template becomes when it runs, so it gets more than the template had: a place
//! for its account's token, tolerations of a node's silence, a priority and a service class.

mod account;
mod admission;
mod qos;
mod status;
mod subresources;
mod token_volume;
mod update;

use serde_json::{Map, Value, json};

pub use account::use_account;
pub use admission::use_priority;
pub use qos::class as service_class;
pub use subresources::{validate_ephemeral_containers, validate_resize};

use super::{
    Moment, NameRule, Rules, Traits,
    fields::{append, each_mut, entries, fill, filled, flag, list, number, set, text},
    pod_spec::{default_pod_spec, validate_pod_spec},
    warnings::pod_spec_warnings,
};
use crate::status::Problems;

/// The rules of pods.
pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    // Tolerations are one value to whoever applies them: what was added is added again.
    prepare_update: |new, _| {
        drop_groups(new);
        if let Some(spec) = new.get_mut("spec") {
            tolerate_silence(spec);
        }
    },
    validate,
    validate_update: update::validate,
    validate_status: status::validate,
    warnings: |pod| pod_spec_warnings(&pod["spec"], "spec"),
    admit: Some(admission::admit),
    traits: Traits {
        checks_metadata_again: true,
        generation: true,
        delete_returns_object: true,
        grace: Some(grace),
        name: NameRule::Subdomain,
        status_keeps: &["ownerReferences"],
        ..Traits::USUAL
    },
};

fn default(pod: &mut Value) {
    status::default(pod);
    let Some(spec) = filled(pod, "spec") else {
        return;
    };
    default_pod_spec(spec);
    // Less than no time is the least there is.
    if number(spec, "terminationGracePeriodSeconds") < 0 {
        set(spec, "terminationGracePeriodSeconds", 1);
    }
    fill(spec, "enableServiceLinks", true);
    let shares_network = flag(spec, "hostNetwork");
    for containers in ["initContainers", "containers"] {
        for container in each_mut(spec, containers) {
            request_what_is_limited(container);
            if shares_network {
                open_on_host(container);
            }
        }
    }
}

/// A resource with a limit and no request is requested up to the limit.
fn request_what_is_limited(container: &mut Value) {
    let Some(resources) = container.get_mut("resources") else {
        return;
    };
    let requests = &resources["requests"];
    let missing: Map<String, Value> = entries(resources, "limits")
        .filter(|(name, _)| requests.get(name.as_str()).is_none())
        .map(|(name, limit)| (name.clone(), limit.clone()))
        .collect();
    if missing.is_empty() {
        return;
    }
    if let Some(Value::Object(requests)) = filled(resources, "requests") {
        requests.extend(missing);
    }
}

fn open_on_host(container: &mut Value) {
    for port in each_mut(container, "ports") {
        if number(port, "hostPort") == 0 {
            let same = port["containerPort"].clone();
            set(port, "hostPort", same);
        }
    }
}

/// Scheduling in groups is not switched on; what asks for it is not kept.
fn drop_groups(pod: &mut Value) {
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("schedulingGroup");
    }
}

fn prepare_create(pod: &mut Value, moment: &Moment) {
    drop_groups(pod);
    let class = qos::class(&pod["spec"]);
    let mut status = json!({"phase": "Pending", "qosClass": class});
    if !list(&pod["spec"], "schedulingGates").is_empty() {
        set(&mut status, "conditions", json!([gated(moment)]));
    }
    set(pod, "status", status);
}

/// Lets a pod stay a while on a node that stopped answering.
pub fn tolerate(pod: &mut Value) {
    if let Some(spec) = filled(pod, "spec") {
        tolerate_silence(spec);
    }
}

/// Why a pod with gates is not placed.
fn gated(moment: &Moment) -> Value {
    json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastProbeTime": null,
        "lastTransitionTime": crate::environment::rfc3339(moment.now),
    })
}

/// A pod stays five minutes on a node that stopped answering, unless it says otherwise.
fn tolerate_silence(spec: &mut Value) {
    const TAINTS: [&str; 2] = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ];
    let said = |taint: &str| {
        list(spec, "tolerations").iter().any(|toleration| {
            let (key, effect) = (text(toleration, "key"), text(toleration, "effect"));
            (key == taint || key.is_empty()) && matches!(effect, "NoExecute" | "")
        })
    };
    let missing: Vec<Value> = TAINTS
        .into_iter()
        .filter(|taint| !said(taint))
        .map(|taint| {
            json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
        })
        .collect();
    if !missing.is_empty() {
        append(spec, "tolerations", missing);
    }
}

fn validate(pod: &Value, problems: &mut Problems) {
    validate_pod_spec(&pod["spec"], "spec", problems);
}

/// A pod that never ran or has finished needs no time to stop.
fn grace(pod: &Value, requested: Option<i64>) -> i64 {
    let spec = &pod["spec"];
    let finished = matches!(text(&pod["status"], "phase"), "Failed" | "Succeeded");
    if text(spec, "nodeName").is_empty() || finished {
        return 0;
    }
    let seconds = requested.unwrap_or_else(|| number(spec, "terminationGracePeriodSeconds"));
    if seconds < 0 { 1 } else { seconds }
}

#[cfg(test)]
mod tests;
