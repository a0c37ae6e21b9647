//! The status of a pod: addresses under two names, and immutable parts.

use std::{collections::HashMap, net::IpAddr};

use serde_json::{Value, json};

use crate::{
    kinds::{
        field_rules::obeys,
        fields::{is_set, list, number, set, text},
        names,
        path::Path,
    },
    status::{FieldError, FieldErrorKind, Problems},
};

/// `podIP` and the first of `podIPs` are the same address under two names; `podIP` wins.
pub(super) fn default(pod: &mut Value) {
    let Some(status) = pod.get_mut("status") else {
        return;
    };
    let single = text(status, "podIP").to_owned();
    let first = list(status, "podIPs")
        .first()
        .map(|first| text(first, "ip").to_owned());
    match (single.as_str(), first) {
        ("", Some(first)) => set(status, "podIP", first),
        ("", None) => {}
        (single, None) => set(status, "podIPs", json!([{"ip": single}])),
        (single, Some(first)) if first != single => {
            set(status, "podIPs", json!([{"ip": single}]));
        }
        (_, Some(_)) => {}
    }
}

pub(super) fn validate(new: &Value, old: &Value, problems: &mut Problems) {
    let (status, before) = (&new["status"], &old["status"]);
    let conditions = Path::At("status.conditions");
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        let path = conditions.index(index);
        for complaint in names::qualified(text(condition, "type")) {
            problems.invalid(path.field("Type"), text(condition, "type"), complaint);
        }
        check_generation(condition, &path, problems);
    }
    let nominated = text(status, "nominatedNodeName");
    if !nominated.is_empty() {
        for complaint in names::subdomain(nominated) {
            problems.invalid("status.nominatedNodeName", nominated, complaint);
        }
    }
    check_generation(status, &Path::At("status"), problems);
    let (class, was) = (text(status, "qosClass"), text(before, "qosClass"));
    // An absent one stays as it was.
    if !was.is_empty() && !class.is_empty() && class != was {
        problems.invalid("status.qosClass", class, "field is immutable");
    }
    check_addresses(status, problems);
    super::reports::check(status, &new["spec"], problems);
    if is_set(status, "extendedResourceClaimStatus") {
        check_extended(
            &status["extendedResourceClaimStatus"],
            &new["spec"],
            problems,
        );
    }
}

/// Validates the claim that a pod's extended resources came from, and the requests it maps to.
fn check_extended(claimed: &Value, spec: &Value, problems: &mut Problems) {
    let path = Path::At("status.extendedResourceClaimStatus");
    // Of several containers of one name, the first counts.
    let fields = ["containers", "initContainers"].into_iter();
    let known = fields.flat_map(|field| list(spec, field).iter().rev());
    let known: HashMap<&str, &Value> = known.map(|known| (text(known, "name"), known)).collect();
    let mappings = list(claimed, "requestMappings");
    let all = path.field("requestMappings");
    if mappings.is_empty() {
        problems.required(all, "at least one request mapping is required");
    }
    for (index, mapping) in mappings.iter().enumerate() {
        let place = all.index(index);
        let (container, resource) = (
            text(mapping, "containerName"),
            text(mapping, "resourceName"),
        );
        match known.get(container) {
            None => {
                let detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                problems.invalid(place.field("containerName"), container, detail);
            }
            Some(known) if !is_set(&known["resources"]["requests"], resource) => {
                let detail = "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests";
                problems.invalid(place.field("resourceName"), resource, detail);
            }
            Some(_) => {}
        }
        let request = text(mapping, "requestName");
        obeys(names::label, request, &path.field("requestName"), problems);
    }
    match text(claimed, "resourceClaimName") {
        "" => problems.required(path.field("resourceClaimName"), ""),
        name => obeys(
            names::subdomain,
            name,
            &path.field("resourceClaimName"),
            problems,
        ),
    }
}

fn check_addresses(status: &Value, problems: &mut Problems) {
    let path = Path::At("status.podIPs");
    for (index, entry) in list(status, "podIPs").iter().enumerate() {
        crate::kinds::address::check_form(text(entry, "ip"), &path.index(index), problems);
    }
    check_families(list(status, "podIPs"), &path, problems);
    let path = Path::At("status.hostIPs");
    let host = text(status, "hostIP");
    for (index, entry) in list(status, "hostIPs").iter().enumerate() {
        let place = path.index(index);
        if index == 0 && text(entry, "ip") != host {
            problems.invalid(
                place.field("ip"),
                text(entry, "ip"),
                "must be equal to `hostIP`",
            );
        }
        crate::kinds::address::check_form(text(entry, "ip"), &place, problems);
    }
    check_families(list(status, "hostIPs"), &path, problems);
}

/// At most one address of each family.
fn check_families(addresses: &[Value], path: &Path<'_>, problems: &mut Problems) {
    if addresses.len() < 2 {
        return;
    }
    let addresses: Vec<&str> = addresses.iter().map(|entry| text(entry, "ip")).collect();
    let family = |address: &&str| family_of(address);
    let families: Option<Vec<bool>> = addresses.iter().map(family).collect();
    if families.is_none()
        && let Some((index, wrong)) = addresses
            .iter()
            .enumerate()
            .find(|(_, address)| family_of(address).is_none())
    {
        problems.push(FieldError {
            kind: FieldErrorKind::Internal,
            path: path.to_string(),
            value: None,
            detail: format!(
                "failed to check for dual stack with error:invalid IP[{index}]: {wrong}"
            ),
        });
    }
    let both = families.is_some_and(|families| families.len() == 2 && families[0] != families[1]);
    if !both {
        let shown = addresses
            .iter()
            .map(|ip| format!("{{\"IP\":{}}}", json!(ip)));
        let shown = format!("[{}]", shown.collect::<Vec<_>>().join(","));
        let detail = "may specify no more than one IP for each IP family";
        problems.written(FieldErrorKind::Invalid, path, &shown, detail);
    }
}

/// The family of an address, true for IPv6; leading zeros are ignored.
fn family_of(address: &str) -> Option<bool> {
    let plain = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        part => part.to_owned(),
    };
    let four: Vec<String> = address.split('.').map(plain).collect();
    let parsed = address
        .parse::<IpAddr>()
        .or_else(|_| four.join(".").parse());
    parsed.ok().map(|address| address.is_ipv6())
}

fn check_generation(holder: &Value, path: &Path<'_>, problems: &mut Problems) {
    let seen = number(holder, "observedGeneration");
    if seen < 0 {
        let detail = "must be a non-negative integer";
        problems.invalid(path.field("observedGeneration"), seen, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::texts;

    #[test]
    fn the_first_address_has_two_names() {
        for (sent, shown) in [
            (
                json!({"podIP": "1.1.1.1"}),
                json!({"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}]}),
            ),
            (
                json!({"podIPs": [{"ip": "1.1.1.1"}]}),
                json!({"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}]}),
            ),
        ] {
            let mut pod = json!({"status": sent});
            default(&mut pod);
            assert_eq!(pod["status"], shown);
        }
    }

    #[test]
    fn conditions_have_names_and_the_class_stays() {
        let new = json!({"status": {"qosClass": "Guaranteed", "conditions": [{"type": "a b"}]}});
        let old = json!({"status": {"qosClass": "BestEffort"}});
        let mut problems = Problems::new();
        validate(&new, &old, &mut problems);
        let errors = texts(&problems);
        assert!(
            errors[0].starts_with("status.conditions[0].Type: Invalid value: \"a b\""),
            "{errors:?}"
        );
        assert_eq!(
            errors[1],
            "status.qosClass: Invalid value: \"Guaranteed\": field is immutable"
        );
    }
}
