//! What a change of a Service keeps, and what it may not touch.

use serde_json::Value;

use super::{drop_fields, has_address, has_health_port, has_node_ports};
use crate::{
    kinds::fields::{each_mut, is_empty, list, number, set, take, text},
    status::Problems,
};

/// A client that sends no address, node ports or families means the ones it has.
pub(super) fn prepare(new: &mut Value, old: &Value) {
    let old = &old["spec"];
    let Some(new) = new.get_mut("spec") else {
        return;
    };
    drop_with_type(new, old);
    if has_address(new) && has_address(old) {
        follow_primary(new, old);
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            keep(new, old, field);
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
    let absent = match new.get(field) {
        Some(Value::Array(items)) => items.is_empty(),
        value => is_empty(value) || value.is_some_and(|v| v == 0),
    };
    if absent && let Some(value) = old.get(field) {
        set(new, field, value.clone());
    }
}

/// `clusterIP` and the first of `clusterIPs` are one thing under two names; when a client changed
/// one of them, the other follows.
fn follow_primary(new: &mut Value, old: &Value) {
    let asked = text(new, "clusterIP");
    let untouched = list(new, "clusterIPs") == list(old, "clusterIPs");
    if !asked.is_empty() && asked != text(old, "clusterIP") && untouched {
        let primary = Value::from(vec![asked]);
        set(new, "clusterIPs", primary);
    }
}

/// What the old type needed goes with it, unless the client changed it and so meant it.
fn drop_with_type(new: &mut Value, old: &Value) {
    if has_address(old) && !has_address(new) && new.get("clusterIP") == old.get("clusterIP") {
        let fields = [
            "clusterIP",
            "clusterIPs",
            "ipFamilies",
            "ipFamilyPolicy",
            "internalTrafficPolicy",
        ];
        drop_fields(new, &fields);
    }
    if has_node_ports(old) && !has_node_ports(new) {
        let before: Vec<i64> = list(old, "ports")
            .iter()
            .map(|p| number(p, "nodePort"))
            .collect();
        for port in each_mut(new, "ports") {
            if before.contains(&number(port, "nodePort")) {
                take(port, "nodePort");
            }
        }
    }
    if has_health_port(old) && !has_health_port(new) {
        take(new, "healthCheckNodePort");
    }
    let balanced = |spec: &Value| text(spec, "type") == "LoadBalancer";
    if balanced(old) && !balanced(new) {
        take(new, "allocateLoadBalancerNodePorts");
        if new.get("loadBalancerClass") == old.get("loadBalancerClass") {
            take(new, "loadBalancerClass");
        }
    }
    if !super::is_reachable_from_outside(new)
        && new.get("externalTrafficPolicy") == old.get("externalTrafficPolicy")
    {
        take(new, "externalTrafficPolicy");
    }
}

fn keep_node_ports(new: &mut Value, old: &Value) {
    let mut used: Vec<i64> = list(new, "ports")
        .iter()
        .map(|p| number(p, "nodePort"))
        .collect();
    for port in each_mut(new, "ports") {
        if number(port, "nodePort") != 0 {
            continue;
        }
        let same = list(old, "ports").iter().find(|before| {
            number(before, "port") == number(port, "port")
                && text(before, "protocol") == text(port, "protocol")
        });
        let node = same.map_or(0, |before| number(before, "nodePort"));
        if node != 0 && !used.contains(&node) {
            set(port, "nodePort", node);
            used.push(node);
        }
    }
}

pub(super) fn validate(new: &Value, old: &Value, problems: &mut Problems) {
    let (new, old) = (&new["spec"], &old["spec"]);
    if has_address(new) && has_address(old) {
        let before = text(old, "clusterIP");
        if !before.is_empty() && text(new, "clusterIP") != before {
            let shown = new["clusterIPs"].clone();
            problems.invalid("spec.clusterIPs[0]", shown, "may not change once set");
        }
    }
    let balanced = |spec: &Value| text(spec, "type") == "LoadBalancer";
    if balanced(new)
        && balanced(old)
        && new.get("loadBalancerClass") != old.get("loadBalancerClass")
    {
        let shown = new["loadBalancerClass"].clone();
        problems.invalid("spec.loadBalancerClass", shown, "may not change once set");
    }
}
