//! What a pod may be told of itself.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, Pod, ResourceFieldSelector},
    apimachinery::pkg::api::resource::Quantity,
};

/// The value of a field that a pod may ask for by its path; nothing if there is no such field.
pub(super) fn of_pod(pod: &Pod, path: &str) -> Option<String> {
    if let Some((map, key)) = subscript(path) {
        let map = match map {
            "metadata.labels" => &pod.metadata.labels,
            "metadata.annotations" => &pod.metadata.annotations,
            _ => return None,
        };
        let value = map.as_ref().and_then(|map| map.get(key));
        return Some(value.cloned().unwrap_or_default());
    }
    let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
    let value = match path {
        "metadata.name" => pod.metadata.name.clone(),
        "metadata.namespace" => pod.metadata.namespace.clone(),
        "metadata.uid" => pod.metadata.uid.clone(),
        "metadata.labels" => Some(lines(pod.metadata.labels.as_ref())),
        "metadata.annotations" => Some(lines(pod.metadata.annotations.as_ref())),
        "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()),
        "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()),
        "status.podIP" | "status.podIPs" => status.and_then(|status| status.pod_ip.clone()),
        "status.hostIP" | "status.hostIPs" => status.and_then(|status| status.host_ip.clone()),
        _ => return None,
    };
    Some(value.unwrap_or_default())
}

/// `metadata.labels['app']` taken apart.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (map, rest) = path.split_once("['")?;
    Some((map, rest.strip_suffix("']")?))
}

/// One line for each entry, with the value quoted.
fn lines(map: Option<&BTreeMap<String, String>>) -> String {
    let entries = map.into_iter().flatten();
    let lines: Vec<_> = entries
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    lines.join("\n")
}

/// What a container asks for or is limited to, in units of the divisor and rounded up; nothing if
/// there is no such resource.
pub(super) fn of_resources(container: &Container, field: &ResourceFieldSelector) -> Option<String> {
    let resources = container.resources.clone().unwrap_or_default();
    let (which, name) = field.resource.split_once('.')?;
    let amounts = match which {
        "requests" => resources.requests,
        "limits" => resources.limits,
        _ => return None,
    };
    let amount = amounts.unwrap_or_default().get(name).and_then(amount)?;
    let one = field.divisor.as_ref().and_then(self::amount);
    let divisor = one.filter(|&divisor| divisor > 0.0).unwrap_or(1.0);
    Some(((amount / divisor).ceil() as i64).to_string())
}

/// A quantity as a number.
fn amount(quantity: &Quantity) -> Option<f64> {
    const UNITS: [(&str, f64); 13] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
    ];
    let text = quantity.0.as_str();
    let unit = UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    match unit {
        Some((number, factor)) => number.parse::<f64>().ok().map(|number| number * factor),
        None => text.parse().ok(),
    }
}
