//! The downward API: fields of a pod in its files and environment.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};

use crate::workload::{ONE, amount};

/// The value of a pod field by its path; none if there is no such field.
pub(super) fn pod_field(pod: &Pod, path: &str) -> Option<String> {
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

/// Splits `metadata.labels['app']` into path and key.
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

/// A request or limit of a container, in units of the divisor and rounded up; none if there is no
/// such resource.
pub(super) fn resource_field(
    container: &Container,
    field: &ResourceFieldSelector,
) -> Option<String> {
    let resources = container.resources.clone().unwrap_or_default();
    let (which, name) = field.resource.split_once('.')?;
    let amounts = match which {
        "requests" => resources.requests,
        "limits" => resources.limits,
        _ => return None,
    };
    let amount = amounts.unwrap_or_default().get(name).and_then(amount)?;
    let divisor = field.divisor.as_ref().and_then(self::amount);
    let divisor = divisor.filter(|&divisor| divisor > 0).unwrap_or(ONE);
    Some(
        amount
            .max(0)
            .unsigned_abs()
            .div_ceil(divisor.unsigned_abs())
            .to_string(),
    )
}
