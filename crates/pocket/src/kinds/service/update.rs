//! Updates of a Service: the fields they keep, and the immutable ones.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::{
    has_address, has_health_port, has_node_ports, is_balanced, is_headless, is_on_nodes,
    is_reachable_from_outside, node_ports, validate::check_class,
};
use crate::{
    kinds::fields::{each_mut, list, number, set, take, text},
    status::Problems,
};

/// Keeps the allocated address and node ports if the client sends none.
pub(super) fn keep_allocated(new: &mut Value, old: &Value) {
    if has_address(new) && has_address(old) {
        if text(new, "clusterIP").is_empty() {
            keep(new, old, "clusterIP");
        }
        let same = text(new, "clusterIP") == text(old, "clusterIP");
        if same && list(new, "clusterIPs").is_empty() {
            keep(new, old, "clusterIPs");
        }
    }
    if has_node_ports(new) && has_node_ports(old) {
        keep_node_ports(new, old);
    }
    if has_health_port(new) && has_health_port(old) && number(new, "healthCheckNodePort") == 0 {
        keep(new, old, "healthCheckNodePort");
    }
}

fn keep(new: &mut Value, old: &Value, field: &str) {
    if let Some(value) = old.get(field) {
        set(new, field, value.clone());
    }
}

/// Keeps the node port of each port, identified by its name.
fn keep_node_ports(new: &mut Value, old: &Value) {
    let held: HashSet<i64> = node_ports::of(old).collect();
    let mut used: HashSet<i64> = node_ports::of(new).collect();
    used.retain(|node| held.contains(node));
    // Of several ports of one name, the last counts.
    let before = list(old, "ports").iter();
    let before: HashMap<&str, &Value> = before.map(|port| (text(port, "name"), port)).collect();
    for port in each_mut(new, "ports") {
        if number(port, "nodePort") != 0 {
            continue;
        }
        let same = before.get(text(port, "name"));
        let node = same.map_or(0, |before| number(before, "nodePort"));
        if node != 0 && used.insert(node) {
            set(port, "nodePort", node);
        }
    }
}

/// `clusterIP` and the first of `clusterIPs` are the same address under two names; when a client
/// changed only one of them, the other follows. A client that sets one of them owns only that
/// field.
pub(super) fn pair_addresses(new: &mut Value, old: Option<&Value>) {
    let address = text(new, "clusterIP");
    let follows = match old {
        None => list(new, "clusterIPs").is_empty(),
        Some(old) => {
            let untouched = list(new, "clusterIPs") == list(old, "clusterIPs");
            let unset = list(new, "clusterIPs").is_empty();
            address != text(old, "clusterIP") && (untouched || unset)
        }
    };
    if !follows {
        return;
    }
    if address.is_empty() {
        take(new, "clusterIPs");
    } else {
        let addresses = json!([address]);
        set(new, "clusterIPs", addresses);
    }
}

/// Drops the fields that only the old type needs, unless the client changed them.
pub(super) fn drop_with_type(new: &mut Value, old: &Value) {
    let same = |new: &Value, field: &str| {
        let value = |spec: &Value| spec.get(field).filter(|value| !value.is_null()).cloned();
        value(new) == value(old)
    };
    if has_address(old) && !has_address(new) {
        if same(new, "clusterIPs") {
            take(new, "clusterIP");
            take(new, "clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if same(new, field) {
                take(new, field);
            }
        }
    }
    if !has_address(new) && list(new, "clusterIPs").is_empty() {
        take(new, "clusterIP");
    }
    if is_on_nodes(old) && !is_on_nodes(new) && same_node_ports(new, old) {
        for port in each_mut(new, "ports") {
            take(port, "nodePort");
        }
    }
    if has_health_port(old) && !has_health_port(new) && same(new, "healthCheckNodePort") {
        take(new, "healthCheckNodePort");
    }
    if is_balanced(old) && !is_balanced(new) {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if same(new, field) {
                take(new, field);
            }
        }
    }
    let outside = is_reachable_from_outside;
    if outside(old) && !outside(new) && same(new, "externalTrafficPolicy") {
        take(new, "externalTrafficPolicy");
    }
}

/// Whether the client requests no new node port.
fn same_node_ports(new: &Value, old: &Value) -> bool {
    let held: HashSet<i64> = node_ports::of(old).collect();
    let mut asked = node_ports::of(new).filter(|&node| node != 0);
    asked.all(|node| held.contains(&node))
}

/// Validates a change.
pub(super) fn validate(new: &Value, old: &Value, problems: &mut Problems) {
    let (new, old) = (&new["spec"], &old["spec"]);
    if has_address(new) && has_address(old) && !(is_headless(new) && is_headless(old)) {
        check_primary(new, old, problems);
    }
    if is_balanced(new)
        && is_balanced(old)
        && new.get("loadBalancerClass") != old.get("loadBalancerClass")
    {
        let shown = new["loadBalancerClass"].clone();
        problems.invalid("spec.loadBalancerClass", shown, "may not change once set");
    }
    // The class is validated here and once more with everything else.
    check_class(new, problems);
    let health = number(old, "healthCheckNodePort");
    if has_health_port(new) && has_health_port(old) && health != number(new, "healthCheckNodePort")
    {
        problems.forbidden("spec.healthCheckNodePort", "field is immutable");
    }
}

fn check_primary(new: &Value, old: &Value, problems: &mut Problems) {
    let (now, before) = (list(new, "clusterIPs"), list(old, "clusterIPs"));
    let Some(first) = before.first() else {
        return;
    };
    if now.is_empty() {
        let detail = "primary clusterIP can not be unset";
        problems.invalid("spec.clusterIPs[0]", now, detail);
    } else if now[0] != *first {
        problems.invalid("spec.clusterIPs[0]", now, "may not change once set");
    }
}
