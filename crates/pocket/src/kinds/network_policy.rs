//! NetworkPolicy (networking.k8s.io/v1). It is stored; nothing here filters packets.

mod cidr;

use serde_json::Value;

use super::{
    Rules, Traits,
    field_rules::obeys,
    fields::{each_mut, fill, filled, is_set, list, number, set, text},
    label_selector, names,
    path::Path,
};
use crate::status::Problems;

const SPEC: Path<'_> = Path::At("spec");

pub(super) const RULES: Rules = Rules {
    default,
    validate,
    warnings: |_| {
        vec![
            "network policies are stored but not enforced by this server: all traffic is allowed"
                .into(),
        ]
    },
    traits: Traits {
        generation: true,
        status: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn default(object: &mut Value) {
    let Some(spec) = filled(object, "spec") else {
        return;
    };
    filled(spec, "podSelector");
    if list(spec, "policyTypes").is_empty() {
        // An egress rule implies egress; without rules the policy is for ingress alone.
        let mut types = vec!["Ingress"];
        if !list(spec, "egress").is_empty() {
            types.push("Egress");
        }
        set(spec, "policyTypes", types);
    }
    for direction in ["ingress", "egress"] {
        for rule in each_mut(spec, direction) {
            for port in each_mut(rule, "ports") {
                fill(port, "protocol", "TCP");
            }
        }
    }
}

fn validate(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    label_selector::validate(&spec["podSelector"], &SPEC.field("podSelector"), problems);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let path = SPEC.field(direction);
        for (i, rule) in list(spec, direction).iter().enumerate() {
            validate_rule(rule, peers, &path.index(i), problems);
        }
    }
    let types = list(spec, "policyTypes");
    let path = SPEC.field("policyTypes");
    if types.len() > 2 {
        problems.invalid(
            path,
            types.to_vec(),
            "may not specify more than two policyTypes",
        );
    }
}

fn validate_rule(rule: &Value, peers: &str, path: &Path<'_>, problems: &mut Problems) {
    let ports = path.field("ports");
    for (i, port) in list(rule, "ports").iter().enumerate() {
        validate_port(port, &ports.index(i), problems);
    }
    let path = path.field(peers);
    for (i, peer) in list(rule, peers).iter().enumerate() {
        validate_peer(peer, &path.index(i), problems);
    }
}

fn validate_port(item: &Value, path: &Path<'_>, problems: &mut Problems) {
    let port = &item["port"];
    let at = path.field("port");
    if let Some(number) = port.as_i64() {
        for complaint in names::port_number(number) {
            problems.invalid(at, number, complaint);
        }
    } else if let Some(name) = port.as_str() {
        obeys(names::port_name, name, &at, problems);
    }
    let Some(end) = item["endPort"].as_i64() else {
        return;
    };
    let at = path.field("endPort");
    if port.is_null() {
        problems.invalid(at, end, "may not be specified when `port` is not specified");
    } else if port.is_string() {
        problems.invalid(at, end, "may not be specified when `port` is non-numeric");
    } else if end < number(item, "port") {
        problems.invalid(at, end, "must be greater than or equal to `port`");
    } else {
        for complaint in names::port_number(end) {
            problems.invalid(at, end, complaint);
        }
    }
}

fn validate_peer(peer: &Value, path: &Path<'_>, problems: &mut Problems) {
    let selectors = ["podSelector", "namespaceSelector"];
    for key in selectors {
        label_selector::validate(&peer[key], &path.field(key), problems);
    }
    let selected = selectors.iter().any(|key| is_set(peer, key));
    match (is_set(peer, "ipBlock"), selected) {
        (false, false) => problems.required(path, "must specify a peer"),
        (true, true) => problems.forbidden(path, "may not specify both ipBlock and another peer"),
        (true, false) => validate_block(&peer["ipBlock"], &path.field("ipBlock"), problems),
        (false, true) => {}
    }
}

fn validate_block(block: &Value, path: &Path<'_>, problems: &mut Problems) {
    const NOT_A_BLOCK: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    let written = text(block, "cidr");
    if written.is_empty() {
        return;
    }
    let Some(whole) = cidr::read(written) else {
        return problems.invalid(path.field("cidr"), written, NOT_A_BLOCK);
    };
    let path = path.field("except");
    for (i, hole) in list(block, "except").iter().enumerate() {
        let text = hole.as_str().unwrap_or_default();
        match cidr::read(text) {
            None => problems.invalid(path.index(i), text, NOT_A_BLOCK),
            Some(hole) if !whole.strictly_contains(&hole) => {
                problems.invalid(path.index(i), text, "must be a strict subset of `cidr`");
            }
            Some(_) => {}
        }
    }
}
