//! Nodes.
//!
//! A kubelet sends the status along when it registers its node, so unlike other kinds a new Node
//! keeps its status.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    Rules, Traits, WriteContext,
    field_rules::obeys,
    fields::{append, fill, filled, list, text},
    names,
    path::Path,
    pod_spec::EFFECTS,
};
use crate::status::{FieldErrorKind, Problems};

const NOT_READY: &str = "node.kubernetes.io/not-ready";

const NODE_INFO: [&str; 10] = [
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
];

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    validate,
    validate_update,
    traits: Traits::USUAL,
    ..Rules::SHAPE_ONLY
};

fn default(node: &mut Value) {
    filled(node, "spec");
    let Some(status) = filled(node, "status") else {
        return;
    };
    if let Some(port) = filled(status, "daemonEndpoints").and_then(|e| filled(e, "kubeletEndpoint"))
    {
        fill(port, "Port", 0);
    }
    if let Some(info) = filled(status, "nodeInfo") {
        for field in NODE_INFO {
            fill(info, field, "");
        }
    }
    if let Some(capacity) = status.get("capacity").cloned() {
        fill(status, "allocatable", capacity);
    }
}

/// Taints a new node until its kubelet reports that it is ready.
fn prepare_create(node: &mut Value, _: &WriteContext) {
    let Some(spec) = filled(node, "spec") else {
        return;
    };
    let marked =
        |taint: &Value| text(taint, "key") == NOT_READY && text(taint, "effect") == "NoSchedule";
    if !list(spec, "taints").iter().any(marked) {
        append(
            spec,
            "taints",
            [json!({"key": NOT_READY, "effect": "NoSchedule"})],
        );
    }
}

fn validate(node: &Value, problems: &mut Problems) {
    let mut seen = HashSet::new();
    // The path that kube-apiserver reports.
    let all = Path::At("metadata.taints");
    for (index, taint) in list(&node["spec"], "taints").iter().enumerate() {
        let path = all.index(index);
        let (key, value) = (text(taint, "key"), text(taint, "value"));
        obeys(names::qualified, key, &path.field("key"), problems);
        obeys(names::label_value, value, &path.field("value"), problems);
        let effect = text(taint, "effect");
        if effect.is_empty() {
            problems.required(path.field("effect"), "");
        } else if !EFFECTS.contains(&effect) {
            problems.not_supported(path.field("effect"), effect, &EFFECTS);
        }
        if !seen.insert((key, effect)) {
            let detail = "taints must be unique by key and effect pair";
            let kind = FieldErrorKind::Duplicate;
            problems.written(kind, path, &shown(taint), detail);
        }
    }
}

/// A taint with kube-apiserver's internal field names, as errors show it.
fn shown(taint: &Value) -> String {
    let [key, value, effect] = ["key", "value", "effect"].map(|field| json!(text(taint, field)));
    let added = &taint["timeAdded"];
    format!(r#"{{"Key":{key},"Value":{value},"Effect":{effect},"TimeAdded":{added}}}"#)
}

fn validate_update(new: &Value, old: &Value, problems: &mut Problems) {
    for (field, detail) in [
        (
            "podCIDR",
            "node updates may not change podCIDR except from \"\" to valid",
        ),
        (
            "providerID",
            "node updates may not change providerID except from \"\" to valid",
        ),
    ] {
        let (now, before) = (text(&new["spec"], field), text(&old["spec"], field));
        if !before.is_empty() && now != before {
            problems.forbidden(format!("spec.{field}"), detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{created, errors, update_errors};

    #[test]
    fn a_node_registers_with_its_status() {
        let sent =
            json!({"status": {"capacity": {"cpu": "4"}, "nodeInfo": {"architecture": "arm64"}}});
        let stored = created(&RULES, &sent);
        assert_eq!(stored["status"]["allocatable"], json!({"cpu": "4"}));
        assert_eq!(stored["status"]["nodeInfo"]["architecture"], "arm64");
        assert_eq!(created(&RULES, &stored), stored, "one taint is enough");
    }

    #[test]
    fn taints_are_well_formed_and_unique() {
        let taint = json!({"key": "a", "effect": "NoSchedule"});
        let bad = json!({"key": "a b", "value": "-", "effect": "NoExecute"});
        let node = json!({"spec": {"taints": [taint, taint, bad]}});
        let errors = errors(&RULES, &node);
        assert!(
            errors[0].ends_with(r#"taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}: taints must be unique by key and effect pair"#),
            "{errors:?}"
        );
        assert!(
            errors[1].starts_with("metadata.taints[2].key: Invalid value"),
            "{errors:?}"
        );
        assert!(
            errors[2].starts_with("metadata.taints[2].value: Invalid value"),
            "{errors:?}"
        );
    }

    #[test]
    fn the_provider_is_named_once() {
        let of = |id: &str| json!({"spec": {"providerID": id}});
        assert_eq!(update_errors(&RULES, &of("a"), &of("")), [""; 0]);
        assert_eq!(update_errors(&RULES, &of("b"), &of("a")).len(), 1);
    }
}
