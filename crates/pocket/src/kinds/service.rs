//! Services.
//!
//! A Service owns an address and perhaps node ports. Both are handed out in [`admit`], which runs
//! alone among the writes of services, so two services never get the same one.
//!
//! [`admit`]: Rules::admit

mod addresses;
mod node_ports;
mod status;
mod update;
mod validate;

use serde_json::{Value, json};

pub(super) use self::addresses::first_address;
use super::{
    Cluster, NameRule, Rules, Traits,
    fields::{each_mut, fill, filled, is_empty, list, set, take, text},
};
use crate::status::{ApiError, Problems};

/// How long a client sticks to one pod when it sticks at all: three hours.
const AFFINITY_SECONDS: i64 = 10800;

/// The rules of Services.
pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: |service, _| {
        set(service, "status", json!({"loadBalancer": {}}));
        pair_addresses(service);
    },
    prepare_update: |new, old| {
        update::prepare(new, old);
        pair_addresses(new);
    },
    validate_status: status::validate,
    first_warnings: |_| Vec::new(),
    warnings,
    validate: validate::validate,
    validate_create: |_, _| {},
    validate_update: update::validate,
    admit: Some(admit),
    traits: Traits {
        exclusive: true,
        enums_last: true,
        create_on_update: true,
        delete_returns_object: true,
        name: NameRule::Label,
        ..Traits::USUAL
    },
};

fn default(service: &mut Value) {
    status::default(service);
    let Some(spec) = filled(service, "spec") else {
        return;
    };
    fill(spec, "type", "ClusterIP");
    fill(spec, "sessionAffinity", "None");
    if text(spec, "sessionAffinity") == "ClientIP" {
        let client = filled(spec, "sessionAffinityConfig").and_then(|c| filled(c, "clientIP"));
        if let Some(client) = client {
            fill(client, "timeoutSeconds", AFFINITY_SECONDS);
        }
    } else if text(spec, "sessionAffinity") == "None" {
        take(spec, "sessionAffinityConfig");
    }
    for port in each_mut(spec, "ports") {
        fill(port, "protocol", "TCP");
        if is_empty(port.get("targetPort")) || port["targetPort"] == 0 {
            let same = port["port"].clone();
            set(port, "targetPort", same);
        }
    }
    if has_address(spec) {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if is_reachable_from_outside(spec) {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if text(spec, "type") == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// The first of `clusterIPs` is `clusterIP`. Whoever sets one of them owns that one alone.
fn pair_addresses(service: &mut Value) {
    let Some(spec) = service.get_mut("spec") else {
        return;
    };
    let address = text(spec, "clusterIP").to_owned();
    if !address.is_empty() && list(spec, "clusterIPs").is_empty() {
        set(spec, "clusterIPs", json!([address]));
    }
}

/// What the author of a Service should know.
fn warnings(service: &Value) -> Vec<String> {
    let spec = &service["spec"];
    let mut warnings = Vec::new();
    if !list(spec, "externalIPs").is_empty() {
        let text =
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
        warnings.push(text.to_owned());
    }
    if text(spec, "trafficDistribution") == "PreferClose" {
        let text =
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"";
        warnings.push(text.to_owned());
    }
    if !text(spec, "externalName").is_empty() && has_address(spec) {
        let text = "spec.externalName is ignored when spec.type is not \"ExternalName\"";
        warnings.push(text.to_owned());
    }
    warnings
}

/// Every type but `ExternalName` has an address, or `None` in its place.
fn has_address(spec: &Value) -> bool {
    text(spec, "type") != "ExternalName"
}

fn is_headless(spec: &Value) -> bool {
    has_address(spec) && text(spec, "clusterIP") == "None"
}

fn is_reachable_from_outside(spec: &Value) -> bool {
    match text(spec, "type") {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => !list(spec, "externalIPs").is_empty(),
        _ => false,
    }
}

/// Whether the ports of the Service get node ports.
fn has_node_ports(spec: &Value) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => spec["allocateLoadBalancerNodePorts"] != false,
        _ => false,
    }
}

/// Whether a balancer asks each node if it has a pod of the Service.
fn has_health_port(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

fn admit(service: &mut Value, old: Option<&Value>, cluster: &dyn Cluster) -> Result<(), ApiError> {
    if old.is_some_and(|old| allocated(&old["spec"]) == allocated(&service["spec"])) {
        return Ok(());
    }
    let settings = cluster.settings();
    let metadata = &service["metadata"];
    let (namespace, name) = (
        text(metadata, "namespace").to_owned(),
        text(metadata, "name").to_owned(),
    );
    let mut others = cluster.list("", "services", "");
    others.retain(|other| {
        let metadata = &other["metadata"];
        text(metadata, "name") != name || text(metadata, "namespace") != namespace
    });
    let mut problems = Problems::new();
    if let Some(spec) = filled(service, "spec") {
        let held = old.map_or(&Value::Null, |old| &old["spec"]);
        addresses::allocate(spec, held, &others, settings.service_range, &mut problems)?;
        node_ports::allocate(spec, held, &others, settings.node_ports, &mut problems)?;
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid("", "Service", &name, &problems))
    }
}

/// All that allocation looks at and gives; an update that leaves it alone needs no look around.
fn allocated(spec: &Value) -> (Vec<Option<&Value>>, Vec<i64>) {
    const FIELDS: [&str; 8] = [
        "type",
        "clusterIP",
        "clusterIPs",
        "ipFamilies",
        "ipFamilyPolicy",
        "externalTrafficPolicy",
        "allocateLoadBalancerNodePorts",
        "healthCheckNodePort",
    ];
    let fields = FIELDS.iter().map(|field| spec.get(field)).collect();
    (fields, node_ports::of(spec).collect())
}

/// Takes the fields out of the spec.
fn drop_fields(spec: &mut Value, fields: &[&str]) {
    for field in fields {
        take(spec, field);
    }
}

#[cfg(test)]
mod tests;
