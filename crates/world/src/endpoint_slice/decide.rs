//! The desired slices of a Service. Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::{Pod, Service},
        discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;

use crate::{
    service_pods::{
        HEADLESS_LABEL, SERVICE_NAME_LABEL, addresses, hostname, is_headless, ports,
        publishes_not_ready, set_trigger_time, target_ref,
    },
    workload::{is_ready, owned_by, suffix},
};

/// The label of a slice that names its controller.
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(super) const CONTROLLER_NAME: &str = "endpointslice-controller.k8s.io";
/// The maximum number of endpoints in a slice.
const MAX_ENDPOINTS: usize = 100;

#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) service: &'a Service,
    /// The pods that it selects.
    pub(super) pods: Vec<&'a Pod>,
    /// The slices that this controller wrote for it.
    pub(super) slices: Vec<&'a EndpointSlice>,
    /// The zones of nodes, by their names.
    pub(super) zones: BTreeMap<String, String>,
    /// The time of the change of pods or of the Service that caused this reconcile, if it is known.
    pub(super) trigger_time: Option<Timestamp>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Decision {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) replace: Vec<EndpointSlice>,
    pub(super) delete: Vec<EndpointSlice>,
}

/// Endpoints with the same ports.
type EndpointGroups = Vec<(Option<Vec<EndpointPort>>, Vec<Endpoint>)>;

pub(super) fn decide(facts: &Facts<'_>) -> Decision {
    let mut decision = Decision::default();
    let families = families(facts.service);
    for v6 in [false, true] {
        let kind = if v6 { "IPv6" } else { "IPv4" };
        let slices = facts.slices.iter().copied();
        let own: Vec<_> = slices.filter(|slice| slice.address_type == kind).collect();
        if families.contains(&kind) {
            let groups = groups(facts, v6);
            plan_slices(facts, kind, &own, groups, &mut decision);
        } else {
            decision.delete.extend(own.into_iter().cloned());
        }
    }
    decision
}

fn families(service: &Service) -> BTreeSet<&str> {
    let spec = service.spec.iter();
    let named: BTreeSet<_> = spec
        .flat_map(|spec| spec.ip_families.iter().flatten())
        .map(String::as_str)
        .collect();
    if named.is_empty() {
        return BTreeSet::from(["IPv4"]);
    }
    named
}

fn groups(facts: &Facts<'_>, v6: bool) -> EndpointGroups {
    let mut groups = EndpointGroups::new();
    for pod in &facts.pods {
        let addresses = addresses(pod, v6);
        if addresses.is_empty() {
            continue;
        }
        let ports = endpoint_ports(facts.service, pod);
        let endpoint = endpoint(facts, pod, addresses);
        match groups.iter_mut().find(|(known, _)| *known == ports) {
            Some((_, endpoints)) => endpoints.push(endpoint),
            None => groups.push((ports, vec![endpoint])),
        }
    }
    if groups.is_empty() {
        groups.push((None, Vec::new()));
    }
    groups
}

fn endpoint_ports(service: &Service, pod: &Pod) -> Option<Vec<EndpointPort>> {
    let ports = ports(service, pod).into_iter();
    let ports = ports.map(|(port, number)| EndpointPort {
        name: Some(port.name.clone().unwrap_or_default()),
        port: Some(number),
        protocol: Some(port.protocol.clone().unwrap_or("TCP".to_owned())),
        app_protocol: port.app_protocol.clone(),
    });
    Some(ports.collect()).filter(|ports: &Vec<_>| !ports.is_empty())
}

fn endpoint(facts: &Facts<'_>, pod: &Pod, addresses: Vec<String>) -> Endpoint {
    let serving = is_ready(pod);
    let terminating = pod.metadata.deletion_timestamp.is_some();
    let ready = (serving && !terminating) || publishes_not_ready(facts.service);
    let node_name = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    Endpoint {
        addresses,
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: hostname(facts.service, pod),
        zone: node_name
            .as_ref()
            .and_then(|node| facts.zones.get(node).cloned()),
        node_name,
        target_ref: Some(target_ref(pod)),
        ..Endpoint::default()
    }
}

/// Plans the writes that bring the slices of one address type to `groups`.
fn plan_slices(
    facts: &Facts<'_>,
    kind: &str,
    own: &[&EndpointSlice],
    groups: EndpointGroups,
    decision: &mut Decision,
) {
    let mut unused: Vec<&EndpointSlice> = own.to_vec();
    let mut unassigned = Vec::new();
    for (ports, endpoints) in groups {
        let (fit, others) = unused.into_iter().partition(|slice| slice.ports == ports);
        unused = others;
        let (kept, spare, left) = fill(fit, endpoints);
        unused.extend(spare);
        for (slice, endpoints) in kept {
            let mut new = slice_of(facts, kind, Some(slice), ports.clone(), endpoints);
            if new != *slice {
                set_trigger_time(&mut new.metadata, facts.trigger_time);
                decision.replace.push(new);
            }
        }
        unassigned.extend(left.into_iter().map(|endpoints| (ports.clone(), endpoints)));
    }
    let mut unused = unused.into_iter();
    for (ports, endpoints) in unassigned {
        // An unused slice is rewritten rather than deleted beside a new one.
        if let Some(slice) = unused.next() {
            let mut new = slice_of(facts, kind, Some(slice), ports, endpoints);
            set_trigger_time(&mut new.metadata, facts.trigger_time);
            decision.replace.push(new);
        } else {
            let mut new = slice_of(facts, kind, None, ports, endpoints);
            set_trigger_time(&mut new.metadata, facts.trigger_time);
            new.metadata.name = Some(free_name(facts, kind, &decision.create));
            decision.create.push(new);
        }
    }
    decision.delete.extend(unused.cloned());
}

type FilledSlices<'a> = (
    Vec<(&'a EndpointSlice, Vec<Endpoint>)>,
    Vec<&'a EndpointSlice>,
    Vec<Vec<Endpoint>>,
);

/// Leaves endpoints in their slices, and puts new ones where there is space. Returns the slices in
/// use, the empty ones, and the endpoints that need new slices.
fn fill(slices: Vec<&EndpointSlice>, endpoints: Vec<Endpoint>) -> FilledSlices<'_> {
    let mut assigned: Vec<(&EndpointSlice, Vec<Endpoint>)> = slices
        .into_iter()
        .map(|slice| (slice, Vec::new()))
        .collect();
    let (mut new, nothing) = (Vec::new(), endpoints.is_empty());
    for endpoint in endpoints {
        let home = assigned
            .iter_mut()
            .find(|(slice, _)| holds(slice, &endpoint));
        match home {
            Some((_, kept)) if kept.len() < MAX_ENDPOINTS => kept.push(endpoint),
            Some(_) | None => new.push(endpoint),
        }
    }
    let mut new = new.into_iter();
    // The fullest first, so that there are few slices.
    assigned.sort_by_key(|(_, kept)| std::cmp::Reverse(kept.len()));
    for (_, kept) in assigned.iter_mut().filter(|(_, kept)| !kept.is_empty()) {
        let space = MAX_ENDPOINTS - kept.len();
        kept.extend(new.by_ref().take(space));
    }
    let rest: Vec<_> = new.collect();
    let mut left: Vec<Vec<Endpoint>> = rest.chunks(MAX_ENDPOINTS).map(<[_]>::to_vec).collect();
    if nothing {
        left.push(Vec::new());
    }
    let (mut kept, mut spare) = (Vec::new(), Vec::new());
    for (slice, mut endpoints) in assigned {
        if endpoints.is_empty() {
            let Some(chunk) = left.pop() else {
                spare.push(slice);
                continue;
            };
            endpoints = chunk;
        }
        endpoints.sort_by(|a, b| name(a).cmp(&name(b)));
        kept.push((slice, endpoints));
    }
    (kept, spare, left)
}

fn name(endpoint: &Endpoint) -> Option<&String> {
    endpoint.target_ref.as_ref()?.name.as_ref()
}

fn holds(slice: &EndpointSlice, endpoint: &Endpoint) -> bool {
    let uid = |endpoint: &Endpoint| endpoint.target_ref.as_ref().and_then(|to| to.uid.clone());
    let mut endpoints = slice.endpoints.iter().flatten();
    endpoints.any(|other| uid(other) == uid(endpoint))
}

fn slice_of(
    facts: &Facts<'_>,
    kind: &str,
    former: Option<&EndpointSlice>,
    ports: Option<Vec<EndpointPort>>,
    endpoints: Vec<Endpoint>,
) -> EndpointSlice {
    let service = facts.service;
    let fresh = || ObjectMeta {
        namespace: service.namespace(),
        generate_name: Some(format!("{}-", service.name_any())),
        owner_references: owned_by(service).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    let mut metadata = former.map_or_else(fresh, |slice| slice.metadata.clone());
    metadata.labels = Some(labels(service));
    EndpointSlice {
        metadata,
        address_type: kind.to_owned(),
        endpoints: Some(endpoints).filter(|endpoints| !endpoints.is_empty()),
        ports,
    }
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.labels().clone();
    labels.remove(HEADLESS_LABEL);
    if is_headless(service) {
        labels.insert(HEADLESS_LABEL.to_owned(), String::new());
    }
    labels.insert(SERVICE_NAME_LABEL.to_owned(), service.name_any());
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER_NAME.to_owned());
    labels
}

/// The first free name derived from the Service.
fn free_name(facts: &Facts<'_>, kind: &str, made: &[EndpointSlice]) -> String {
    let service = facts.service;
    let uid = service.uid().unwrap_or_default();
    let taken = |name: &String| {
        let known = facts.slices.iter().copied().chain(made);
        known
            .into_iter()
            .any(|slice| slice.metadata.name.as_ref() == Some(name))
    };
    let short: String = service.name_any().chars().take(57).collect();
    let name = |number: u64| format!("{short}-{}", suffix(&[&uid, kind, &number.to_string()]));
    let mut number = 0;
    while taken(&name(number)) {
        number += 1;
    }
    name(number)
}
