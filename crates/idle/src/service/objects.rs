//! What is made for a service: the private Service and the slices that bring resolvers into the
//! public one. Objects of KubeElasti 0.1.30 have the same names and are taken over in place.

use std::collections::BTreeMap;

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

use super::facts::Resolver;
use crate::api::{ElastiService, ResolverPort, names};

/// On the private Service, and so on the slices that are made for it.
pub const PRIVATE: &str = "idle.neaptide.dev/private";
/// On a slice: the Service that it is part of.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// On a slice: who keeps it.
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// That is us. A value of a label has no slash.
pub const US: &str = "idle.neaptide.dev";

/// The ports of a Service that resolvers can stand in for, by name and number: those of TCP.
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
        Some("the Service is only another name for something outside")
    } else if spec.selector.as_ref().is_none_or(BTreeMap::is_empty) {
        Some("the Service selects no pods")
    } else if ports(public).is_empty() {
        Some("the Service has no TCP port")
    } else {
        None
    }
}

/// Labels that say who keeps an object: the private Service is kept by nobody but us.
const KEEPERS: [&str; 5] = [
    "app.kubernetes.io/managed-by",
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "helm.sh/",
];
/// The one annotation that says how the data plane is to lead to pods.
const TOPOLOGY: &str = "service.kubernetes.io/topology-mode";

/// The private Service as it should be, given what is there. Ports, pods and labels are those of the
/// public one. Its annotations are not, since they tell other tools what to do with it: one more
/// name, one more load balancer. KubeElasti took them along; what it took is taken away again.
pub fn private(owner: &ElastiService, public: &Service, live: Option<&Service>) -> Service {
    let mut private = live.cloned().unwrap_or_default();
    let from = public.spec.clone().unwrap_or_default();
    let metadata = &mut private.metadata;
    metadata.name = Some(names::private_service(&owner.spec.service));
    metadata.namespace = owner.namespace();
    metadata.owner_references = Some(owners(owner));
    dress(metadata, public);
    let was = private.spec.take().unwrap_or_default();
    private.spec = Some(ServiceSpec {
        type_: Some("ClusterIP".to_owned()),
        selector: from.selector,
        ports: from
            .ports
            .map(|ports| ports.into_iter().map(unpublished).collect()),
        ip_families: was.ip_families.or(from.ip_families),
        ip_family_policy: was.ip_family_policy.or(from.ip_family_policy),
        cluster_ip: was.cluster_ip,
        cluster_ips: was.cluster_ips,
        internal_traffic_policy: was.internal_traffic_policy,
        session_affinity: was.session_affinity,
        ..ServiceSpec::default()
    });
    private
}

fn dress(metadata: &mut ObjectMeta, public: &Service) {
    let kept = |name: &str| KEEPERS.iter().any(|keeper| name.starts_with(keeper));
    let labels = labels(metadata);
    for (name, value) in public.labels() {
        if kept(name) {
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

/// A port that is nowhere on a node, with what the server would put there itself.
fn unpublished(port: ServicePort) -> ServicePort {
    let number = IntOrString::Int(port.port);
    ServicePort {
        node_port: None,
        protocol: port.protocol.or_else(|| Some("TCP".to_owned())),
        target_port: port.target_port.or(Some(number)),
        ..port
    }
}

/// The slices as they should be, one for each family of addresses that the Service has, given what is
/// there.
pub fn slices(
    owner: &ElastiService,
    public: &Service,
    ports: &[ResolverPort],
    resolvers: &[Resolver],
    live: &[&EndpointSlice],
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
        let known = live.iter().find(|slice| slice.name_any() == name);
        let mut slice = known.map_or_else(EndpointSlice::default, |slice| (*slice).clone());
        slice.address_type = family;
        let metadata = &mut slice.metadata;
        metadata.name = Some(name);
        metadata.namespace = owner.namespace();
        metadata.owner_references = Some(owners(owner));
        let labels = labels(metadata);
        labels.insert(SERVICE_NAME.to_owned(), service.clone());
        labels.insert(MANAGED_BY.to_owned(), US.to_owned());
        let there = resolvers
            .iter()
            .filter(|resolver| resolver.address.is_ipv6() == six);
        let endpoints: Vec<_> = there.map(endpoint).collect();
        // None is as good as nothing said, and no reason to write.
        if !endpoints.is_empty() || slice.endpoints.iter().flatten().next().is_some() {
            slice.endpoints = Some(endpoints);
        }
        slice.ports = Some(ports.iter().map(endpoint_port).collect());
        slice
    });
    slices.collect()
}

fn endpoint(resolver: &Resolver) -> Endpoint {
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

/// The resolvers that slices of their Service show as ready, each address once.
pub fn resolvers<'a>(slices: impl IntoIterator<Item = &'a EndpointSlice>) -> Vec<Resolver> {
    let endpoints = slices
        .into_iter()
        .flat_map(|slice| slice.endpoints.iter().flatten());
    let ready = endpoints.filter(|endpoint| is_ready(endpoint));
    let mut resolvers: Vec<_> = ready
        .flat_map(|endpoint| {
            let pod = endpoint.target_ref.as_ref().and_then(name);
            let addresses = endpoint.addresses.iter();
            addresses.filter_map(move |address| {
                Some(Resolver {
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

/// Whether connections may be sent there. Nothing said means yes, as for every reader of slices.
pub fn is_ready(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    let said = conditions.and_then(|conditions| conditions.ready);
    said.unwrap_or(true)
}

/// Whether the object belongs to this very one.
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
