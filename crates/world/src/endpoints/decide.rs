//! What the Endpoints of a Service are to say. Pure.

use k8s_openapi::{
    api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;

use crate::{
    service_pods::{HEADLESS, addresses, hostname, is_headless, ports, publishes_all, target},
    workload::is_ready,
};

/// Marks Endpoints that we wrote.
pub(super) const WRITER: &str = "endpoints.kubernetes.io/managed-by";
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// So many addresses one object holds.
const ROOM: usize = 1000;

/// An address, and whether it is ready.
type Place = (EndpointAddress, bool);

/// The Endpoints of `service` with these pods, made of what there was.
pub(super) fn decide(service: &Service, pods: &[&Pod], former: Option<&Endpoints>) -> Endpoints {
    let fresh = || ObjectMeta {
        name: service.metadata.name.clone(),
        namespace: service.namespace(),
        ..ObjectMeta::default()
    };
    let mut metadata = former.map_or_else(fresh, |former| former.metadata.clone());
    let mut labels = service.labels().clone();
    labels.remove(HEADLESS);
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(WRITER.to_owned(), "endpoint-controller".to_owned());
    metadata.labels = Some(labels);

    let (places, too_many) = places(service, pods);
    let mut annotations = metadata.annotations.take().unwrap_or_default();
    annotations.remove(OVER_CAPACITY);
    if too_many {
        annotations.insert(OVER_CAPACITY.to_owned(), "truncated".to_owned());
    }
    metadata.annotations = Some(annotations).filter(|annotations| !annotations.is_empty());
    let subsets = subsets(service, &places);
    Endpoints {
        metadata,
        subsets: Some(subsets).filter(|subsets| !subsets.is_empty()),
    }
}

/// Where the pods are, and whether there were more than fit. The ready ones stay.
fn places<'a>(service: &Service, pods: &[&'a Pod]) -> (Vec<(&'a Pod, Place)>, bool) {
    let all = publishes_all(service);
    let families = service.spec.iter().flat_map(|spec| &spec.ip_families);
    let v6 = families
        .flatten()
        .next()
        .is_some_and(|first| first == "IPv6");
    let stays = |pod: &&&Pod| all || pod.metadata.deletion_timestamp.is_none();
    let place = |pod: &&'a Pod| {
        let address = EndpointAddress {
            ip: addresses(pod, v6).into_iter().next()?,
            hostname: hostname(service, pod),
            node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            target_ref: Some(target(pod)),
        };
        Some((*pod, (address, all || is_ready(pod))))
    };
    let mut places: Vec<_> = pods.iter().filter(stays).filter_map(place).collect();
    places.sort_by(|(_, (a, _)), (_, (b, _))| a.ip.cmp(&b.ip));
    let too_many = places.len() > ROOM;
    if too_many {
        places.sort_by_key(|(_, (_, ready))| !ready);
        places.truncate(ROOM);
    }
    (places, too_many)
}

/// Ports that are at the same addresses are told together.
fn subsets(service: &Service, places: &[(&Pod, Place)]) -> Vec<EndpointSubset> {
    let mut by_port: Vec<(Option<EndpointPort>, Vec<&Place>)> = Vec::new();
    let portless = service
        .spec
        .as_ref()
        .is_none_or(|spec| spec.ports.as_ref().is_none_or(Vec::is_empty));
    for (pod, place) in places {
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
                Some((_, places)) => places.push(place),
                None => by_port.push((port, vec![place])),
            }
        }
    }
    let mut subsets: Vec<(Vec<EndpointPort>, Vec<&Place>)> = Vec::new();
    for (port, places) in by_port {
        match subsets.iter_mut().find(|(_, known)| *known == places) {
            Some((ports, _)) => ports.extend(port),
            None => subsets.push((port.into_iter().collect(), places)),
        }
    }
    subsets.into_iter().map(subset).collect()
}

fn subset((ports, places): (Vec<EndpointPort>, Vec<&Place>)) -> EndpointSubset {
    let of = |wanted: bool| {
        let fit = places.iter().filter(|(_, ready)| *ready == wanted);
        let addresses: Vec<_> = fit.map(|(address, _)| address.clone()).collect();
        Some(addresses).filter(|addresses| !addresses.is_empty())
    };
    EndpointSubset {
        addresses: of(true),
        not_ready_addresses: of(false),
        ports: Some(ports).filter(|ports| !ports.is_empty()),
    }
}
