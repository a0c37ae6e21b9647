//! Rows of services, endpoints, ingresses and network policies.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::read::{self, NONE, UNSET, either, joined, list, number, shortened, text, text_or};

/// Addresses, ports or hosts that are shown; the rest is only counted.
const MAX_SHOWN: usize = 3;

pub(super) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let address = match text(object, "/spec/clusterIPs/0") {
        "" => text_or(object, "/spec/clusterIP", NONE),
        address => address,
    };
    vec![
        read::name(object),
        text(object, "/spec/type").into(),
        address.into(),
        external_address(object).into(),
        joined(list(object, "/spec/ports").iter().map(service_port)).into(),
        read::age(object, now),
        read::labels(object.pointer("/spec/selector")).into(),
    ]
}

fn external_address(object: &Value) -> String {
    let external = list(object, "/spec/externalIPs")
        .iter()
        .filter_map(Value::as_str);
    match text(object, "/spec/type") {
        "ClusterIP" | "NodePort" => joined(external),
        "LoadBalancer" => {
            let mut all = balancers(object);
            all.extend(external);
            if all.is_empty() {
                "<pending>".into()
            } else {
                all.join(",")
            }
        }
        "ExternalName" => text(object, "/spec/externalName").into(),
        _ => "<unknown>".into(),
    }
}

/// Addresses or host names of a load balancer, each once and in order.
fn balancers(object: &Value) -> Vec<&str> {
    let entries = list(object, "/status/loadBalancer/ingress").iter();
    let shown = entries.map(|entry| text_or(entry, "/ip", text(entry, "/hostname")));
    let shown: BTreeSet<&str> = shown.filter(|address| !address.is_empty()).collect();
    shown.into_iter().collect()
}

fn service_port(port: &Value) -> String {
    let protocol = text_or(port, "/protocol", "TCP");
    match (number(port, "/port"), number(port, "/nodePort")) {
        (port, 0) => format!("{port}/{protocol}"),
        (port, node) => format!("{port}:{node}/{protocol}"),
    }
}

pub(super) fn endpoints(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut all = Vec::new();
    for subset in list(object, "/subsets") {
        let ports = list(subset, "/ports");
        let ips = || list(subset, "/addresses").iter().map(|a| text(a, "/ip"));
        if ports.is_empty() {
            all.extend(ips().map(str::to_owned));
        }
        for port in ports {
            all.extend(ips().map(|ip| socket(ip, number(port, "/port"))));
        }
    }
    let shown = shortened(&all, MAX_SHOWN);
    vec![read::name(object), shown.into(), read::age(object, now)]
}

fn socket(ip: &str, port: i64) -> String {
    if ip.contains(':') {
        format!("[{ip}]:{port}")
    } else {
        format!("{ip}:{port}")
    }
}

pub(super) fn endpoint_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports = list(object, "/ports").iter();
    let ports: Vec<String> = ports
        .map(|port| either(port.get("port")).unwrap_or_else(|| "*".into()))
        .collect();
    let ports = if ports.is_empty() {
        UNSET.into()
    } else {
        shortened(&ports, MAX_SHOWN)
    };
    let addresses: Vec<String> = list(object, "/endpoints")
        .iter()
        .flat_map(|endpoint| list(endpoint, "/addresses"))
        .filter_map(|address| either(Some(address)))
        .collect();
    let addresses = if addresses.is_empty() {
        UNSET.into()
    } else {
        shortened(&addresses, MAX_SHOWN)
    };
    vec![
        read::name(object),
        text(object, "/addressType").into(),
        ports.into(),
        addresses.into(),
        read::age(object, now),
    ]
}

pub(super) fn ingress(object: &Value, now: Timestamp) -> Vec<Value> {
    let annotation = "/metadata/annotations/kubernetes.io~1ingress.class";
    let class = text_or(object, annotation, NONE);
    let hosts = list(object, "/spec/rules")
        .iter()
        .map(|rule| text(rule, "/host"));
    let hosts: Vec<String> = hosts.filter(|h| !h.is_empty()).map(Into::into).collect();
    let hosts = if hosts.is_empty() {
        "*".into()
    } else {
        shortened(&hosts, MAX_SHOWN)
    };
    let ports = if list(object, "/spec/tls").is_empty() {
        "80"
    } else {
        "80, 443"
    };
    vec![
        read::name(object),
        text_or(object, "/spec/ingressClassName", class).into(),
        hosts.into(),
        balancers(object).join(",").into(),
        ports.into(),
        read::age(object, now),
    ]
}

pub(super) fn ingress_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let parameters = object.pointer("/spec/parameters").map_or_else(
        || NONE.to_owned(),
        |p| {
            let kind = text(p, "/kind");
            let name = text(p, "/name");
            match text(p, "/apiGroup") {
                "" => format!("{kind}/{name}"),
                group => format!("{kind}.{group}/{name}"),
            }
        },
    );
    vec![
        read::name(object),
        text(object, "/spec/controller").into(),
        parameters.into(),
        read::age(object, now),
    ]
}

pub(super) fn policy(object: &Value, now: Timestamp) -> Vec<Value> {
    let selector = read::selector(object.pointer("/spec/podSelector"));
    vec![read::name(object), selector.into(), read::age(object, now)]
}
