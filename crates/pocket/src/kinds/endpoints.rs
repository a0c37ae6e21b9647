//! Endpoints, the old form of EndpointSlices.

use serde_json::Value;

use super::{
    Cluster, Rules, Traits, address,
    fields::{each_mut, fill, list, number, text},
    names,
    path::Path,
};
use crate::status::{ApiError, Problems};

pub(super) const RULES: Rules = Rules {
    default,
    validate,
    admit: Some(admit),
    traits: Traits {
        create_on_update: true,
        status: false,
        deprecation: Some(
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

const ADDRESSES: [&str; 2] = ["addresses", "notReadyAddresses"];

fn default(endpoints: &mut Value) {
    for subset in each_mut(endpoints, "subsets") {
        for port in each_mut(subset, "ports") {
            fill(port, "protocol", "TCP");
        }
    }
}

fn validate(endpoints: &Value, problems: &mut Problems) {
    let subsets = Path::At("subsets");
    for (index, subset) in list(endpoints, "subsets").iter().enumerate() {
        let path = subsets.index(index);
        if ADDRESSES.iter().all(|field| list(subset, field).is_empty()) {
            problems.required(path, "must specify `addresses` or `notReadyAddresses`");
        }
        each_address(subset, &path, |entry, path| {
            address::check(text(entry, "ip"), &path.field("ip"), problems);
            let hostname = text(entry, "hostname");
            if !hostname.is_empty() {
                for complaint in names::label(hostname) {
                    problems.invalid(path.field("hostname"), hostname, complaint);
                }
            }
        });
        check_ports(subset, &path, problems);
    }
}

fn each_address(subset: &Value, path: &Path<'_>, mut see: impl FnMut(&Value, &Path<'_>)) {
    for field in ADDRESSES {
        let path = path.field(field);
        for (index, entry) in list(subset, field).iter().enumerate() {
            see(entry, &path.index(index));
        }
    }
}

fn check_ports(subset: &Value, path: &Path<'_>, problems: &mut Problems) {
    let all = path.field("ports");
    let ports = list(subset, "ports");
    for (index, port) in ports.iter().enumerate() {
        let path = all.index(index);
        let name = text(port, "name");
        if name.is_empty() && ports.len() > 1 {
            problems.required(path.field("name"), "");
        } else if !name.is_empty() {
            for complaint in names::label(name) {
                problems.invalid(path.field("name"), name, complaint);
            }
        }
        for complaint in names::port_number(number(port, "port")) {
            problems.invalid(path.field("port"), number(port, "port"), complaint);
        }
    }
}

fn admit(endpoints: &mut Value, _: Option<&Value>, cluster: &dyn Cluster) -> Result<(), ApiError> {
    if cluster.settings().loopback_endpoints {
        return Ok(());
    }
    let mut problems = Problems::new();
    let subsets = Path::At("subsets");
    for (index, subset) in list(endpoints, "subsets").iter().enumerate() {
        each_address(subset, &subsets.index(index), |entry, path| {
            address::refuse_loopback(&entry["ip"], &path.field("ip"), &mut problems);
        });
    }
    if problems.is_empty() {
        return Ok(());
    }
    let name = text(&endpoints["metadata"], "name");
    Err(ApiError::invalid("", "Endpoints", name, &problems))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::{OtherObjects, errors};

    fn at(ip: &str) -> Value {
        json!({"subsets": [{"addresses": [{"ip": ip}], "ports": [{"port": 80}]}]})
    }

    #[test]
    fn addresses_are_reachable_ones() {
        assert_eq!(errors(&RULES, &at("10.1.1.1")), [""; 0]);
        for (ip, text) in [
            ("ten", "must be a valid IP address"),
            ("0.0.0.0", "may not be unspecified"),
            ("169.254.1.1", "may not be in the link-local range"),
            ("fe80::1", "may not be in the link-local range"),
            ("224.0.0.1", "may not be in the link-local multicast range"),
            ("ff02::1", "may not be in the link-local multicast range"),
        ] {
            let errors = errors(&RULES, &at(ip));
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert!(errors[0].starts_with("subsets[0].addresses[0].ip: Invalid value"));
            assert!(errors[0].contains(text), "{errors:?}");
        }
    }

    #[test]
    fn loopback_is_up_to_the_embedder() {
        let mut others = OtherObjects::default();
        let error = admit(&mut at("127.0.0.1"), None, &others).unwrap_err();
        assert!(error.message.contains("may not be in the loopback range"));
        others.settings.loopback_endpoints = true;
        assert_eq!(admit(&mut at("127.0.0.1"), None, &others), Ok(()));
    }

    #[test]
    fn a_subset_has_addresses_and_named_ports() {
        let endpoints = json!({"subsets": [{"ports": [{"port": 1}, {"port": 2, "name": "b"}]}]});
        assert_eq!(
            errors(&RULES, &endpoints),
            [
                "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`",
                "subsets[0].ports[0].name: Required value",
            ]
        );
    }
}
