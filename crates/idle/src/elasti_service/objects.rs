//! The objects that are made for a service: the private Service, and the EndpointSlices that add resolvers to
//! the public one. Objects of KubeElasti 0.1.30 have the same names and are taken over in place.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::{
        core::v1::{ObjectReference, Service, ServicePort, ServiceSpec},
        discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice},
    },
    apimachinery::pkg::{
        apis::meta::v1::{ObjectMeta, OwnerReference},
        util::intstr::IntOrString,
    },
};
use kube::{Resource, ResourceExt};

use super::facts::ResolverEndpoint;
use crate::api::{
    ElastiService, ResolverPort,
    labels::{MANAGED_BY, MANAGER, PRIVATE, SERVICE_NAME},
    names,
};

/// The TCP ports of a Service, for which resolvers can stand in, by name and number.
pub fn ports(public: &Service) -> Vec<(String, i32)> {
    let ports = public.spec.iter().flat_map(|spec| spec.ports.iter());
    let ports = ports.flatten().filter(|port| is_tcp(port));
    let named = ports.map(|port| (port.name.clone().unwrap_or_default(), port.port));
    named.collect()
}

fn is_tcp(port: &ServicePort) -> bool {
    port.protocol.as_deref().unwrap_or("TCP") == "TCP"
}

/// Why resolvers cannot stand in for the pods of this Service, if so.
pub fn unsuitable(public: &Service) -> Option<&'static str> {
    let spec = public.spec.as_ref()?;
    if spec.type_.as_deref() == Some("ExternalName") {
        Some("the Service is of type ExternalName, and has no pods")
    } else if spec.selector.as_ref().is_none_or(BTreeMap::is_empty) {
        Some("the Service selects no pods")
    } else if ports(public).is_empty() {
        Some("the Service has no TCP port")
    } else {
        None
    }
}

/// Prefixes of the labels by which other tools manage an object; the private Service is managed only by this
/// operator.
const MANAGER_LABELS: [&str; 5] = [
    "app.kubernetes.io/managed-by",
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "helm.sh/",
];
/// The only annotation that is copied: it controls how the data plane selects pods.
const TOPOLOGY: &str = "service.kubernetes.io/topology-mode";

/// The desired private Service, given the existing one. Ports, selector and labels are those of the public
/// one. Annotations are not copied, since they would make other tools create another DNS name or load
/// balancer for it. KubeElasti copies them; those that it copied are removed.
pub fn private(owner: &ElastiService, public: &Service, live: Option<&Service>) -> Service {
    let mut private = live.cloned().unwrap_or_default();
    let from = public.spec.clone().unwrap_or_default();
    let metadata = &mut private.metadata;
    metadata.name = Some(names::private_service(&owner.spec.service));
    metadata.namespace = owner.namespace();
    metadata.owner_references = Some(owners(owner));
    copy_metadata(metadata, public);
    let existing = private.spec.take().unwrap_or_default();
    private.spec = Some(ServiceSpec {
        type_: Some("ClusterIP".to_owned()),
        selector: from.selector,
        ports: from
            .ports
            .map(|ports| ports.into_iter().map(private_port).collect()),
        ip_families: existing.ip_families.or(from.ip_families),
        ip_family_policy: existing.ip_family_policy.or(from.ip_family_policy),
        cluster_ip: existing.cluster_ip,
        cluster_ips: existing.cluster_ips,
        internal_traffic_policy: existing.internal_traffic_policy,
        session_affinity: existing.session_affinity,
        ..ServiceSpec::default()
    });
    private
}

fn copy_metadata(metadata: &mut ObjectMeta, public: &Service) {
    let is_managed = |name: &str| MANAGER_LABELS.iter().any(|prefix| name.starts_with(prefix));
    let labels = labels(metadata);
    for (name, value) in public.labels() {
        if is_managed(name) {
            labels.remove(name);
        } else {
            labels.insert(name.clone(), value.clone());
        }
    }
    labels.insert(PRIVATE.to_owned(), "true".to_owned());
    let mut annotations = metadata.annotations.take().unwrap_or_default();
    for (name, value) in public.annotations() {
        if name == TOPOLOGY {
            annotations.insert(name.clone(), value.clone());
        } else {
            annotations.remove(name);
        }
    }
    metadata.annotations = Some(annotations).filter(|all| !all.is_empty());
}

/// A port without a node port, with the defaults that the API server would set.
fn private_port(port: ServicePort) -> ServicePort {
    let number = IntOrString::Int(port.port);
    ServicePort {
        node_port: None,
        protocol: port.protocol.or_else(|| Some("TCP".to_owned())),
        target_port: port.target_port.or(Some(number)),
        ..port
    }
}

/// The desired slices, one for each address family of the Service, given the existing ones.
pub fn slices(
    owner: &ElastiService,
    public: &Service,
    ports: &[ResolverPort],
    resolvers: &[ResolverEndpoint],
    live: &[Arc<EndpointSlice>],
) -> Vec<EndpointSlice> {
    let families = public.spec.as_ref().and_then(|it| it.ip_families.clone());
    let families = families.unwrap_or_else(|| vec!["IPv4".to_owned()]);
    let service = &owner.spec.service;
    let slices = families.into_iter().map(|family| {
        let six = family == "IPv6";
        let name = if six {
            names::resolver_slice_v6(service)
        } else {
            names::resolver_slice(service)
        };
        let existing = live.iter().find(|slice| slice.name_any() == name);
        let mut slice = existing.map_or_else(EndpointSlice::default, |slice| (**slice).clone());
        slice.address_type = family;
        let metadata = &mut slice.metadata;
        metadata.name = Some(name);
        metadata.namespace = owner.namespace();
        metadata.owner_references = Some(owners(owner));
        let labels = labels(metadata);
        labels.insert(SERVICE_NAME.to_owned(), service.clone());
        labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
        let ready = resolvers
            .iter()
            .filter(|resolver| resolver.address.is_ipv6() == six);
        let endpoints: Vec<_> = ready.map(endpoint).collect();
        // An empty list is equal to an absent one, so it is no reason to write.
        if !endpoints.is_empty() || slice.endpoints.iter().flatten().next().is_some() {
            slice.endpoints = Some(endpoints);
        }
        slice.ports = Some(ports.iter().map(endpoint_port).collect());
        slice
    });
    slices.collect()
}

fn endpoint(resolver: &ResolverEndpoint) -> Endpoint {
    Endpoint {
        addresses: vec![resolver.address.to_string()],
        conditions: Some(EndpointConditions {
            ready: Some(true),
            ..EndpointConditions::default()
        }),
        node_name: resolver.node.clone(),
        zone: resolver.zone.clone(),
        ..Endpoint::default()
    }
}

fn endpoint_port(port: &ResolverPort) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.clone()),
        protocol: Some("TCP".to_owned()),
        port: Some(port.resolver_port),
        ..EndpointPort::default()
    }
}

/// The ready resolvers in the slices of their Service, each address once.
pub fn resolver_endpoints<'a>(
    slices: impl IntoIterator<Item = &'a EndpointSlice>,
) -> Vec<ResolverEndpoint> {
    let endpoints = slices
        .into_iter()
        .flat_map(|slice| slice.endpoints.iter().flatten());
    let ready = endpoints.filter(|endpoint| is_ready(endpoint));
    let mut resolvers: Vec<_> = ready
        .flat_map(|endpoint| {
            let pod = endpoint.target_ref.as_ref().and_then(name);
            let addresses = endpoint.addresses.iter();
            addresses.filter_map(move |address| {
                Some(ResolverEndpoint {
                    address: address.parse().ok()?,
                    pod: pod.clone().unwrap_or_else(|| address.clone()),
                    node: endpoint.node_name.clone(),
                    zone: endpoint.zone.clone(),
                })
            })
        })
        .collect();
    resolvers.sort_unstable();
    resolvers.dedup_by(|one, other| one.address == other.address);
    resolvers
}

fn name(reference: &ObjectReference) -> Option<String> {
    reference.name.clone()
}

/// Whether an endpoint accepts connections. An absent condition means yes, as in every reader of slices.
pub fn is_ready(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    let ready = conditions.and_then(|conditions| conditions.ready);
    ready.unwrap_or(true)
}

/// Whether the object has an owner with this uid.
pub fn is_owned<K: Resource>(object: &K, uid: Option<&str>) -> bool {
    let owners = object.meta().owner_references.iter().flatten();
    let mut owners = owners.map(|owner| owner.uid.as_str());
    uid.is_some_and(|uid| owners.any(|owner| owner == uid))
}

fn owners(owner: &ElastiService) -> Vec<OwnerReference> {
    owner.controller_owner_ref(&()).into_iter().collect()
}

fn labels(metadata: &mut ObjectMeta) -> &mut BTreeMap<String, String> {
    metadata.labels.get_or_insert_default()
}

#[cfg(test)]
mod tests;
