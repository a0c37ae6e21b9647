//! EndpointSlices.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    Cluster, Rules, Traits, address,
    fields::{each_mut, fill, is_set, list, number, set, text},
    names,
    path::Path,
};
use crate::status::{ApiError, Problems};

const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20_000;

pub(super) const RULES: Rules = Rules {
    default,
    validate,
    validate_update,
    admit: Some(admit),
    traits: Traits {
        generation: true,
        status: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn default(slice: &mut Value) {
    for endpoint in each_mut(slice, "endpoints") {
        fill(endpoint, "conditions", json!({}));
    }
    for port in each_mut(slice, "ports") {
        if !is_set(port, "name") {
            set(port, "name", "");
        }
        fill(port, "protocol", "TCP");
    }
}

fn validate(slice: &Value, problems: &mut Problems) {
    let endpoints = list(slice, "endpoints");
    if endpoints.len() > MAX_ENDPOINTS {
        problems.too_many("endpoints", endpoints.len(), MAX_ENDPOINTS);
        return;
    }
    let family = text(slice, "addressType");
    let all = Path::At("endpoints");
    for (index, endpoint) in endpoints.iter().enumerate() {
        let path = all.index(index);
        check_addresses(endpoint, family, &path, problems);
        let hostname = text(endpoint, "hostname");
        if !hostname.is_empty() {
            for complaint in names::label(hostname) {
                problems.invalid(path.field("hostname"), hostname, complaint);
            }
        }
    }
    check_ports(slice, problems);
}

fn check_addresses(endpoint: &Value, family: &str, path: &Path<'_>, problems: &mut Problems) {
    let addresses = list(endpoint, "addresses");
    let path = path.field("addresses");
    if addresses.len() > MAX_ADDRESSES {
        problems.too_many(path, addresses.len(), MAX_ADDRESSES);
        return;
    }
    for (index, value) in addresses.iter().enumerate() {
        let text = value.as_str().unwrap_or_default();
        let path = path.index(index);
        match family {
            "FQDN" => {
                for complaint in names::subdomain(text) {
                    problems.invalid(path, text, complaint);
                }
            }
            "IPv4" if text.parse::<std::net::Ipv4Addr>().is_err() => {
                problems.invalid(path, text, "must be an IPv4 address");
            }
            "IPv6" if text.parse::<std::net::Ipv6Addr>().is_err() => {
                problems.invalid(path, text, "must be an IPv6 address");
            }
            "IPv4" | "IPv6" => address::check(text, &path, problems),
            _ => {}
        }
    }
}

fn check_ports(slice: &Value, problems: &mut Problems) {
    let ports = list(slice, "ports");
    if ports.len() > MAX_PORTS {
        problems.too_many("ports", ports.len(), MAX_PORTS);
        return;
    }
    let mut seen = HashSet::new();
    let all = Path::At("ports");
    for (index, port) in ports.iter().enumerate() {
        let path = all.index(index);
        let name = text(port, "name");
        if !seen.insert(name) {
            problems.duplicate(path.field("name"), name);
        }
        if !name.is_empty() {
            for complaint in names::label(name) {
                problems.invalid(path.field("name"), name, complaint);
            }
        }
        // An absent port means every port.
        if is_set(port, "port") {
            for complaint in names::port_number(number(port, "port")) {
                problems.invalid(path.field("port"), number(port, "port"), complaint);
            }
        }
    }
}

fn validate_update(new: &Value, old: &Value, problems: &mut Problems) {
    if text(new, "addressType") != text(old, "addressType") {
        problems.invalid(
            "addressType",
            text(new, "addressType"),
            "field is immutable",
        );
    }
}

fn admit(slice: &mut Value, _: Option<&Value>, cluster: &dyn Cluster) -> Result<(), ApiError> {
    if cluster.settings().loopback_endpoints {
        return Ok(());
    }
    let mut problems = Problems::new();
    let all = Path::At("endpoints");
    for (index, endpoint) in list(slice, "endpoints").iter().enumerate() {
        let path = all.index(index);
        let path = path.field("addresses");
        for (index, value) in list(endpoint, "addresses").iter().enumerate() {
            address::refuse_loopback(value, &path.index(index), &mut problems);
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let name = text(&slice["metadata"], "name");
    Err(ApiError::invalid(
        "discovery.k8s.io",
        "EndpointSlice",
        name,
        &problems,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{OtherObjects, defaulted, errors, update_errors};

    fn slice(family: &str, address: &str) -> Value {
        let slice = json!({"addressType": family, "endpoints": [{"addresses": [address]}], "ports": [{"port": 80}]});
        defaulted(&RULES, &slice)
    }

    #[test]
    fn addresses_are_of_the_family() {
        for (family, address, expected) in [
            ("IPv4", "10.0.0.1", ""),
            ("IPv6", "2001:db8::1", ""),
            ("FQDN", "example.com", ""),
            ("IPv4", "2001:db8::1", "must be an IPv4 address"),
            ("IPv6", "10.0.0.1", "must be an IPv6 address"),
            ("IPv4", "0.0.0.0", "may not be unspecified (0.0.0.0 or ::)"),
            ("FQDN", "-", "a lowercase RFC 1123 subdomain"),
        ] {
            let errors = errors(&RULES, &slice(family, address));
            assert_eq!(
                errors.is_empty(),
                expected.is_empty(),
                "{address}: {errors:?}"
            );
            for text in errors {
                assert!(
                    text.starts_with("endpoints[0].addresses[0]: Invalid value"),
                    "{text}"
                );
                assert!(text.contains(expected), "{text}");
            }
        }
    }

    #[test]
    fn loopback_is_up_to_the_embedder() {
        let mut others = OtherObjects::default();
        let error = admit(&mut slice("IPv6", "::1"), None, &others).unwrap_err();
        assert!(
            error.message.contains("endpoints[0].addresses[0]"),
            "{error}"
        );
        others.settings.loopback_endpoints = true;
        assert_eq!(admit(&mut slice("IPv6", "::1"), None, &others), Ok(()));
    }

    #[test]
    fn port_names_are_unique_and_the_family_stays() {
        let mut twice = slice("IPv4", "10.0.0.1");
        twice["ports"] = json!([{"name": "a"}, {"name": "a"}]);
        assert_eq!(
            errors(&RULES, &twice),
            ["ports[1].name: Duplicate value: \"a\""]
        );
        let old = slice("IPv4", "10.0.0.1");
        assert_eq!(
            update_errors(&RULES, &slice("IPv6", "2001:db8::1"), &old),
            ["addressType: Invalid value: \"IPv6\": field is immutable"]
        );
    }
}
