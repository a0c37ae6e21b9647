//! The desired Endpoints of a Service. Pure.

use k8s_openapi::{
    api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;

use crate::{
    service_pods::{
        HEADLESS_LABEL, addresses, hostname, is_headless, ports, publishes_not_ready, target_ref,
    },
    workload::is_ready,
};

/// The label of Endpoints that this controller wrote.
pub(super) const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// The maximum number of addresses in one object.
const MAX_ADDRESSES: usize = 1000;

/// An address, and whether it is ready.
type PodAddress = (EndpointAddress, bool);

/// The Endpoints of `service` with these pods, based on the former object.
pub(super) fn decide(service: &Service, pods: &[&Pod], former: Option<&Endpoints>) -> Endpoints {
    let fresh = || ObjectMeta {
        name: service.metadata.name.clone(),
        namespace: service.namespace(),
        ..ObjectMeta::default()
    };
    let mut metadata = former.map_or_else(fresh, |former| former.metadata.clone());
    let mut labels = service.labels().clone();
    labels.remove(HEADLESS_LABEL);
    if is_headless(service) {
        labels.insert(HEADLESS_LABEL.to_owned(), String::new());
    }
    labels.insert(MANAGED_BY.to_owned(), "endpoint-controller".to_owned());
    metadata.labels = Some(labels);

    let (pod_addresses, too_many) = pod_addresses(service, pods);
    let mut annotations = metadata.annotations.take().unwrap_or_default();
    annotations.remove(OVER_CAPACITY);
    if too_many {
        annotations.insert(OVER_CAPACITY.to_owned(), "truncated".to_owned());
    }
    metadata.annotations = Some(annotations).filter(|annotations| !annotations.is_empty());
    let subsets = subsets(service, &pod_addresses);
    Endpoints {
        metadata,
        subsets: Some(subsets).filter(|subsets| !subsets.is_empty()),
    }
}

/// The addresses of the pods, and whether they were truncated. Ready ones take precedence.
fn pod_addresses<'a>(service: &Service, pods: &[&'a Pod]) -> (Vec<(&'a Pod, PodAddress)>, bool) {
    let all = publishes_not_ready(service);
    let families = service.spec.iter().flat_map(|spec| &spec.ip_families);
    let v6 = families
        .flatten()
        .next()
        .is_some_and(|first| first == "IPv6");
    let stays = |pod: &&&Pod| all || pod.metadata.deletion_timestamp.is_none();
    let pod_address = |pod: &&'a Pod| {
        let address = EndpointAddress {
            ip: addresses(pod, v6).into_iter().next()?,
            hostname: hostname(service, pod),
            node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            target_ref: Some(target_ref(pod)),
        };
        Some((*pod, (address, all || is_ready(pod))))
    };
    let mut pod_addresses: Vec<_> = pods.iter().filter(stays).filter_map(pod_address).collect();
    pod_addresses.sort_by(|(_, (a, _)), (_, (b, _))| a.ip.cmp(&b.ip));
    let too_many = pod_addresses.len() > MAX_ADDRESSES;
    if too_many {
        pod_addresses.sort_by_key(|(_, (_, ready))| !ready);
        pod_addresses.truncate(MAX_ADDRESSES);
    }
    (pod_addresses, too_many)
}

/// Ports with the same addresses share a subset.
fn subsets(service: &Service, pod_addresses: &[(&Pod, PodAddress)]) -> Vec<EndpointSubset> {
    let mut by_port: Vec<(Option<EndpointPort>, Vec<&PodAddress>)> = Vec::new();
    let portless = service
        .spec
        .as_ref()
        .is_none_or(|spec| spec.ports.as_ref().is_none_or(Vec::is_empty));
    for (pod, pod_address) in pod_addresses {
        let named = ports(service, pod).into_iter().map(|(port, number)| {
            Some(EndpointPort {
                name: port.name.clone().filter(|name| !name.is_empty()),
                port: number,
                protocol: Some(port.protocol.clone().unwrap_or("TCP".to_owned())),
                app_protocol: port.app_protocol.clone(),
            })
        });
        for port in named.chain(portless.then_some(None)) {
            match by_port.iter_mut().find(|(known, _)| *known == port) {
                Some((_, pod_addresses)) => pod_addresses.push(pod_address),
                None => by_port.push((port, vec![pod_address])),
            }
        }
    }
    let mut subsets: Vec<(Vec<EndpointPort>, Vec<&PodAddress>)> = Vec::new();
    for (port, pod_addresses) in by_port {
        match subsets
            .iter_mut()
            .find(|(_, known)| *known == pod_addresses)
        {
            Some((ports, _)) => ports.extend(port),
            None => subsets.push((port.into_iter().collect(), pod_addresses)),
        }
    }
    subsets.into_iter().map(subset).collect()
}

fn subset((ports, pod_addresses): (Vec<EndpointPort>, Vec<&PodAddress>)) -> EndpointSubset {
    let of = |wanted: bool| {
        let fit = pod_addresses.iter().filter(|(_, ready)| *ready == wanted);
        let addresses: Vec<_> = fit.map(|(address, _)| address.clone()).collect();
        Some(addresses).filter(|addresses| !addresses.is_empty())
    };
    EndpointSubset {
        addresses: of(true),
        not_ready_addresses: of(false),
        ports: Some(ports).filter(|ports| !ports.is_empty()),
    }
}
