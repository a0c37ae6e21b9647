//! The hosts file of a pod. Pure.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use k8s_openapi::api::{
    core::v1::{Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::ResourceExt;
use neap_kit::key::Key;

use super::container_launch::host_name;
use crate::service_pods::is_headless;

/// The cluster domain.
const DOMAIN: &str = "cluster.local";

/// The hosts file of `pod`: its own name, its host aliases, and every Service under all names that
/// resolve in its namespace. A headless Service has the addresses of its pods, which may also have
/// their own names; `slices` returns them.
pub(super) fn hosts_file<'a>(
    pod: &Pod,
    services: impl Iterator<Item = &'a Service>,
    slices: impl Fn(&Key) -> Vec<Arc<EndpointSlice>>,
) -> String {
    let mut text = String::from("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n");
    let here = pod.namespace().unwrap_or_default();
    for (address, names) in own(pod, &here) {
        line(&mut text, &address, &names);
    }
    for service in services {
        let address = service
            .spec
            .as_ref()
            .and_then(|spec| spec.cluster_ip.as_deref());
        if is_headless(service) {
            for (address, names) in members(service, &here, &slices(&Key::of(service))) {
                line(&mut text, &address, &names);
            }
        } else if let Some(address) = address.filter(|address| !address.is_empty()) {
            line(&mut text, address, &names(service, &here));
        }
    }
    text
}

fn line(text: &mut String, address: &str, names: &str) {
    let _ = writeln!(text, "{address}\t{names}");
}

/// The names of the pod itself, and its host aliases.
fn own(pod: &Pod, here: &str) -> Vec<(String, String)> {
    let name = host_name(pod);
    let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
    let domain = spec.and_then(|spec| spec.subdomain.as_deref());
    let names = match domain {
        Some(domain) => format!("{name}.{domain}.{here}.svc.{DOMAIN} {name}"),
        None => name,
    };
    let address = status.and_then(|status| status.pod_ip.clone());
    let itself = address.map(|address| (address, names));
    let aliases = spec.and_then(|spec| spec.host_aliases.clone());
    let aliases = aliases.unwrap_or_default().into_iter();
    let aliases = aliases.map(|alias| (alias.ip, alias.hostnames.unwrap_or_default().join(" ")));
    itself.into_iter().chain(aliases).collect()
}

/// The names of a Service, longest first; the shortest only in its own namespace.
fn names(service: &Service, here: &str) -> String {
    let (name, namespace) = (service.name_any(), service.namespace().unwrap_or_default());
    let long = format!("{name}.{namespace}.svc");
    let mut names = format!("{long}.{DOMAIN} {long} {name}.{namespace}");
    if namespace == here {
        names = format!("{names} {name}");
    }
    names
}

/// The ready pods of a Service by address, each with the names of the Service and its own.
fn members(
    service: &Service,
    here: &str,
    slices: &[Arc<EndpointSlice>],
) -> BTreeMap<String, String> {
    let of_service = names(service, here);
    let mut members = BTreeMap::new();
    let endpoints = slices
        .iter()
        .flat_map(|slice| slice.endpoints.iter().flatten());
    for endpoint in endpoints {
        let conditions = endpoint.conditions.as_ref();
        if conditions.and_then(|conditions| conditions.ready) == Some(false) {
            continue;
        }
        let own = endpoint.hostname.as_deref().map(|name| {
            let names = of_service.split(' ').map(|of| format!(" {name}.{of}"));
            names.collect::<String>()
        });
        let names = format!("{of_service}{}", own.unwrap_or_default());
        // Only the first address is used; the others are of the other IP family.
        if let Some(address) = endpoint.addresses.first() {
            members.insert(address.clone(), names);
        }
    }
    members
}
