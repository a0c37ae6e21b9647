//! Pods.
//!
//! A pod is created from a template and gets more than the template had: a volume for its account's
//! token, tolerations for unreachable nodes, a priority and a QoS class.

mod account;
mod admission;
mod label_keys;
mod qos;
mod reports;
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
    NameRule, Rules, Traits, WriteContext,
    fields::{
        append, each_mut, entries, fill, filled, flag, is_set, list, number, set, take, text,
    },
    path::Path,
    pod_spec::{default_pod_spec, default_totals, validate_image_name, validate_spec_of},
    warnings::pod_warnings,
};
use crate::status::Problems;

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    // Tolerations are one atomic value to apply: the ones that the server added are added again.
    prepare_update: |new, old| {
        drop_groups(new);
        if let Some(spec) = new.get_mut("spec") {
            tolerate_silence(spec);
            for field in ["priority", "preemptionPolicy"] {
                if !is_set(spec, field) && is_set(&old["spec"], field) {
                    set(spec, field, old["spec"][field].clone());
                }
            }
        }
    },
    validate,
    validate_create: admission::check_new,
    validate_update: update::validate,
    validate_status: status::validate,
    // Little of a pod can change, and warnings about the rest were given on create.
    warnings: |_| Vec::new(),
    first_warnings: pod_warnings,
    admit: None,
    veil: None,
    traits: Traits {
        checks_metadata_again: true,
        generation: true,
        delete_returns_object: true,
        grace: Some(grace),
        name: NameRule::Subdomain,
        status_keeps: &["ownerReferences", "deletionTimestamp"],
        status_stays: &["qosClass", "observedGeneration"],
        ..Traits::USUAL
    },
};

fn default(pod: &mut Value) {
    status::default(pod);
    let Some(spec) = filled(pod, "spec") else {
        return;
    };
    default_pod_spec(spec);
    fill(spec, "enableServiceLinks", true);
    if number(spec, "terminationGracePeriodSeconds") < 0 {
        set(spec, "terminationGracePeriodSeconds", 1);
    }
    let shares_network = flag(spec, "hostNetwork");
    for containers in ["initContainers", "containers"] {
        for container in each_mut(spec, containers) {
            request_what_is_limited(container);
            if shares_network {
                open_on_host(container);
            }
        }
    }
    default_totals(spec);
}

/// Sets absent requests to the limits.
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

/// Drops fields of features that are not enabled: gang scheduling, custom stop signals,
/// certificates in volumes.
pub(super) fn drop_groups(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec") else {
        return;
    };
    take(spec, "schedulingGroup");
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        for container in each_mut(spec, containers) {
            drop_stop_signal(container);
        }
    }
    for volume in each_mut(spec, "volumes") {
        if let Some(projected) = volume.get_mut("projected") {
            for source in each_mut(projected, "sources") {
                take(source, "clusterTrustBundle");
                take(source, "podCertificate");
            }
        }
    }
}

/// Drops the stop signal, and the lifecycle if it has nothing else.
fn drop_stop_signal(container: &mut Value) {
    let Some(lifecycle) = container.get_mut("lifecycle") else {
        return;
    };
    if take(lifecycle, "stopSignal").is_some()
        && !is_set(lifecycle, "preStop")
        && !is_set(lifecycle, "postStart")
    {
        take(container, "lifecycle");
    }
}

fn prepare_create(pod: &mut Value, moment: &WriteContext) {
    drop_groups(pod);
    let class = qos::class(&pod["spec"]);
    let mut status = json!({"phase": "Pending", "qosClass": class});
    if !list(&pod["spec"], "schedulingGates").is_empty() {
        set(&mut status, "conditions", json!([gated(moment)]));
    }
    set(pod, "status", status);
    label_keys::settle(pod);
}

/// Adds tolerations that let a pod stay a while on an unreachable node.
pub fn tolerate(pod: &mut Value) {
    if let Some(spec) = filled(pod, "spec") {
        tolerate_silence(spec);
    }
}

/// The condition of a pod with scheduling gates.
fn gated(moment: &WriteContext) -> Value {
    json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastProbeTime": null,
        "lastTransitionTime": crate::environment::rfc3339(moment.now),
    })
}

/// Lets a pod stay five minutes on an unreachable node, unless it says otherwise.
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
    let spec = &pod["spec"];
    validate_spec_of(text(&pod["metadata"], "name"), spec, problems);
    if text(spec, "serviceAccountName").is_empty() {
        token_volume::refuse(spec, problems);
    }
    each_container(spec, |container, path| {
        validate_image_name(container, path, problems);
    });
}

/// Visits the containers and init containers of a pod, each with its path.
fn each_container(spec: &Value, mut visit: impl FnMut(&Value, &Path<'_>)) {
    for field in ["containers", "initContainers"] {
        let path = Path::At("spec");
        let path = path.field(field);
        for (index, container) in list(spec, field).iter().enumerate() {
            visit(container, &path.index(index));
        }
    }
}

/// The grace period; zero for a pod that never ran or has finished.
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
