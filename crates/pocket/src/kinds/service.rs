//! Services.
//!
//! A Service owns an address and perhaps node ports. Both are allocated in [`admit`], which runs
//! alone among the writes of services, so two services never get the same one. It runs before
//! validation, which checks the allocated values with everything else.
//!
//! [`admit`]: Rules::admit

mod addresses;
mod families;
mod node_ports;
mod ports;
mod related;
mod status;
mod update;
mod validate;
mod warnings;

use serde_json::{Value, json};

pub(super) use self::addresses::first_address;
use super::{
    Cluster, HiddenFields, NameRule, Rules, Traits,
    fields::{each_mut, fill, filled, is_empty, is_set, list, set, take, text},
};
use crate::status::ApiError;

/// The annotation that requests topology-aware routing, under its old and its current name.
const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const MODE: &str = "service.kubernetes.io/topology-mode";

/// The default session affinity timeout: three hours.
const DEFAULT_AFFINITY_SECONDS: i64 = 10800;

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: |service, _| set(service, "status", json!({"loadBalancer": {}})),
    prepare_update,
    validate_status: status::validate,
    warnings: warnings::warnings,
    validate: validate::validate,
    validate_update: update::validate,
    admit: Some(admit),
    veil: Some(HiddenFields {
        mark: "\"ExternalName\"",
        hide: hide_inner_policy,
    }),
    traits: Traits {
        exclusive: true,
        admitted_first: true,
        judges_enums: true,
        change_first: true,
        create_on_update: true,
        delete_returns_object: true,
        name: NameRule::Label,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
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
            fill(client, "timeoutSeconds", DEFAULT_AFFINITY_SECONDS);
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
    let known = matches!(
        text(spec, "type"),
        "ClusterIP" | "NodePort" | "LoadBalancer"
    );
    if known && !is_set(spec, "internalTrafficPolicy") {
        set(spec, "internalTrafficPolicy", "Cluster");
    }
    if is_reachable_from_outside(spec) {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if text(spec, "type") == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
}

fn prepare_update(new: &mut Value, old: &Value) {
    let Some(spec) = new.get_mut("spec") else {
        return;
    };
    update::drop_with_type(spec, &old["spec"]);
    if !is_balanced(spec)
        && let Some(status) = new.get_mut("status")
    {
        set(status, "loadBalancer", json!({}));
    }
}

/// Hides the internal traffic policy of a Service without an address. A Service that was just
/// removed is shown as it was stored.
fn hide_inner_policy(service: &mut Value) {
    let metadata = &service["metadata"];
    if is_set(metadata, "deletionTimestamp") && list(metadata, "finalizers").is_empty() {
        return;
    }
    if let Some(spec) = service.get_mut("spec").filter(|spec| !has_address(spec)) {
        take(spec, "internalTrafficPolicy");
    }
}

/// Whether the type has an address, or `None` in its place: all but `ExternalName`.
fn has_address(spec: &Value) -> bool {
    text(spec, "type") != "ExternalName"
}

fn is_balanced(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer"
}

/// Whether requested node ports are used.
fn is_on_nodes(spec: &Value) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

/// Whether the address is `None`. Only the one field is checked: a difference between the two is
/// reported separately.
fn is_headless(spec: &Value) -> bool {
    let first = list(spec, "clusterIPs").first();
    has_address(spec) && first.is_some_and(|address| address == "None")
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

/// Whether a load balancer checks each node for a pod of the Service.
fn has_health_port(spec: &Value) -> bool {
    is_balanced(spec) && text(spec, "externalTrafficPolicy") == "Local"
}

fn admit(service: &mut Value, old: Option<&Value>, cluster: &dyn Cluster) -> Result<(), ApiError> {
    let metadata = &service["metadata"];
    let [namespace, name, uid] =
        ["namespace", "name", "uid"].map(|field| text(metadata, field).to_owned());
    let Some(spec) = filled(service, "spec") else {
        return Ok(());
    };
    let old = old.map(|old| &old["spec"]);
    if let Some(old) = old {
        update::keep_allocated(spec, old);
    }
    update::pair_addresses(spec, old);
    let neighbours = OtherServices {
        cluster,
        namespace: &namespace,
        name: &name,
        start: start(&uid),
    };
    let mut problems = families::settle(spec, old);
    if problems.is_empty() {
        addresses::allocate(spec, old, &neighbours, &mut problems);
    }
    if problems.is_empty() {
        node_ports::allocate(spec, old, &neighbours, &mut problems)?;
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid("", "Service", &name, &problems))
    }
}

/// The other Services. They are listed only where something is allocated.
struct OtherServices<'a> {
    cluster: &'a dyn Cluster,
    namespace: &'a str,
    name: &'a str,
    /// Where the search for a free value starts.
    start: usize,
}

/// The start of the search for free values. It differs between Services, so that a released value
/// is not reused at once, while clients may still know it.
fn start(uid: &str) -> usize {
    let digits = uid.get(..8).unwrap_or_default();
    usize::from_str_radix(digits, 16).unwrap_or_default()
}

impl OtherServices<'_> {
    fn all(&self) -> Vec<Value> {
        let mut all = self.cluster.list("", "services", "");
        all.retain(|other| {
            let metadata = &other["metadata"];
            text(metadata, "name") != self.name || text(metadata, "namespace") != self.namespace
        });
        all
    }
}

#[cfg(test)]
mod tests;
