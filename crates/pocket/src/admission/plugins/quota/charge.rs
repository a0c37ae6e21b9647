//! What one object counts for in a quota.

use serde_json::Value;

use super::CountedResource;
use crate::{
    admission::plugins::{
        Amounts, pod_requirements,
        usage::{add, amounts, quantity},
    },
    quantity::{Format, Quantity},
};

/// What an object uses of every resource a quota may limit.
pub fn charge(resource: CountedResource<'_>, object: &Value) -> Amounts {
    let mut used = Amounts::new();
    let count = |used: &mut Amounts, entry: String, times: usize| {
        let times = i64::try_from(times).unwrap_or(i64::MAX);
        used.insert(entry, Quantity::whole(times, Format::DecimalSi));
    };
    let entry = match resource.group {
        "" => format!("count/{}", resource.plural),
        group => format!("count/{}.{group}", resource.plural),
    };
    count(&mut used, entry, 1);
    if !resource.group.is_empty() {
        return used;
    }
    match resource.plural {
        "configmaps" | "secrets" | "replicationcontrollers" | "resourcequotas" => {
            count(&mut used, resource.plural.into(), 1);
        }
        "services" => {
            count(&mut used, "services".into(), 1);
            count(
                &mut used,
                "services.nodeports".into(),
                node_ports(&object["spec"]),
            );
            let balanced = object["spec"]["type"] == "LoadBalancer";
            count(
                &mut used,
                "services.loadbalancers".into(),
                usize::from(balanced),
            );
        }
        "persistentvolumeclaims" => charge_claim(&mut used, &object["spec"]),
        // A finished pod uses nothing but its name.
        "pods"
            if !matches!(
                object["status"]["phase"].as_str(),
                Some("Failed" | "Succeeded")
            ) =>
        {
            count(&mut used, "pods".into(), 1);
            charge_pod(&mut used, &object["spec"]);
        }
        _ => {}
    }
    used
}

fn node_ports(spec: &Value) -> usize {
    let ports = spec["ports"].as_array().map_or(0, Vec::len);
    match spec["type"].as_str() {
        Some("NodePort") => ports,
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] != false => ports,
        _ => 0,
    }
}

fn charge_claim(used: &mut Amounts, spec: &Value) {
    let one = Quantity::whole(1, Format::DecimalSi);
    let class = spec["storageClassName"].as_str().unwrap_or_default();
    let of_class = |entry: &str| format!("{class}.storageclass.storage.k8s.io/{entry}");
    used.insert("persistentvolumeclaims".into(), one);
    if !class.is_empty() {
        used.insert(of_class("persistentvolumeclaims"), one);
    }
    if let Some(size) = quantity(&spec["resources"]["requests"]["storage"]) {
        used.insert("requests.storage".into(), size);
        if !class.is_empty() {
            used.insert(of_class("requests.storage"), size);
        }
    }
}

fn charge_pod(used: &mut Amounts, spec: &Value) {
    for side in ["requests", "limits"] {
        let mut asked = pod_requirements(spec, side);
        add(&mut asked, &amounts(&spec["overhead"]));
        for (name, amount) in asked {
            if side == "requests" && matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage")
            {
                used.insert(name.clone(), amount);
            }
            if side == "requests" && name.starts_with("hugepages-") {
                used.insert(name.clone(), amount);
            }
            used.insert(format!("{side}.{name}"), amount);
        }
    }
}
