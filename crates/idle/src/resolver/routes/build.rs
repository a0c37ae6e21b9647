//! Builds the route table from Kubernetes objects.

use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::Service,
    discovery::v1::{Endpoint, EndpointSlice},
};
use kube::Resource;
use neap_kit::key::Key;

use super::{
    HoldLimits, PodAddresses, Route, RouteTable, RoutedPort, RoutedService,
    protocol::{by_app_protocol, by_port_name},
};
use crate::{
    api::{ElastiService, Mode, NotReady, Protocol, ResolverPort, names},
    resolver::http::ProbeRules,
};

const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The objects that a route table is built from.
#[derive(Debug, Clone, Default)]
pub struct RouteObjects {
    /// All ElastiServices, in any order.
    pub elasti_services: Vec<Arc<ElastiService>>,
    /// The private Services, which declare the `appProtocol` of ports.
    pub services: Vec<Arc<Service>>,
    /// The EndpointSlices of private Services.
    pub slices: Vec<Arc<EndpointSlice>>,
}

/// Defaults for fields that an ElastiService does not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteDefaults {
    /// The longest that a request is held.
    pub deadline: Duration,
    /// The limits of a service's queue.
    pub limits: HoldLimits,
}

impl Default for RouteDefaults {
    fn default() -> Self {
        Self {
            deadline: Duration::from_mins(10),
            limits: HoldLimits {
                requests: 10_000,
                bytes: 64 << 20,
                per_pod: 100,
            },
        }
    }
}

/// EndpointSlices by their private Service.
type Slices<'a> = HashMap<Key, Vec<&'a EndpointSlice>>;

impl RouteTable {
    /// Builds the table. `before` only supplies regular expressions that are compiled already.
    ///
    /// If two ElastiServices claim the same port or Service, the older one keeps it: otherwise a port
    /// would forward the traffic of one service to another.
    pub fn build(objects: &RouteObjects, defaults: RouteDefaults, before: &Self) -> Self {
        let slices = by_service(&objects.slices);
        let private = objects.services.iter();
        let private: HashMap<_, _> = private.map(|found| (Key::of(&**found), &**found)).collect();
        let mut table = Self::default();
        for object in by_age(&objects.elasti_services) {
            let namespace = object.meta().namespace.as_deref().unwrap_or_default();
            let key = Key::new(namespace, &object.spec.service);
            if table.services.contains_key(&key) {
                continue;
            }
            let own = Key::new(namespace, &names::private_service(&object.spec.service));
            let found = private.get(&own).copied();
            let mut service = service(object, key.clone(), found, defaults, before);
            (service.ports).retain(|port| !table.routes.contains_key(&port.resolver_port));
            let service = Arc::new(service);
            for port in &service.ports {
                let route = Route {
                    service: service.clone(),
                    port: port.clone(),
                };
                table.routes.insert(port.resolver_port, Arc::new(route));
            }
            let statuses = own_ports(object);
            let slices = slices.get(&own).map_or(&[][..], Vec::as_slice);
            let mut endpoints = slices
                .iter()
                .flat_map(|slice| slice.endpoints.iter().flatten());
            if endpoints.any(|endpoint| !is_ready(endpoint) && !is_ending(endpoint)) {
                table.starting.insert(key.clone());
            }
            table
                .pods
                .insert(key.clone(), Arc::new(pods(statuses, slices)));
            table.services.insert(key, service);
        }
        table
    }
}

fn by_age(objects: &[Arc<ElastiService>]) -> Vec<&ElastiService> {
    let mut objects: Vec<&ElastiService> = objects.iter().map(|object| &**object).collect();
    objects.sort_by_key(|object| {
        let meta = object.meta();
        let created = (meta.creation_timestamp.as_ref()).map_or(Timestamp::MAX, |time| time.0);
        (created, meta.uid.clone(), Key::of(*object))
    });
    objects
}

/// The resolver ports of the ElastiService's current Service. Its status may still list ports of a
/// former one, whose clients mean that one.
fn own_ports(object: &ElastiService) -> impl Iterator<Item = &ResolverPort> {
    let ports = object.status.iter().flat_map(|status| &status.ports);
    ports.filter(|port| port.is_of(&object.spec.service))
}

fn service(
    object: &ElastiService,
    key: Key,
    private: Option<&Service>,
    defaults: RouteDefaults,
    before: &RouteTable,
) -> RoutedService {
    let spec = &object.spec;
    let ports = own_ports(object);
    let mode = object.status.as_ref().and_then(|status| status.mode);
    let queue = spec.queue.clone().unwrap_or_default();
    let number = |value: Option<i32>, otherwise| {
        let value = value.and_then(|value| usize::try_from(value).ok());
        value.unwrap_or(otherwise).max(1)
    };
    let bytes = queue.bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let deadline = (spec.deadline_seconds).and_then(|seconds| u64::try_from(seconds).ok());
    let known = before.services.get(&key).map(|service| &service.probes);
    let known = known.filter(|probes| probes.compiled_from(&spec.probe_response));
    let probes = known.cloned();
    RoutedService {
        ports: ports
            .filter_map(|port| self::port(object, port, private))
            .collect(),
        key,
        deadline: deadline.map_or(defaults.deadline, Duration::from_secs),
        limits: HoldLimits {
            requests: number(queue.requests, defaults.limits.requests),
            bytes: bytes.unwrap_or(defaults.limits.bytes),
            per_pod: number(queue.per_pod, defaults.limits.per_pod),
        },
        probes: probes.unwrap_or_else(|| Arc::new(ProbeRules::compile(&spec.probe_response))),
        waiting_page: spec.waiting_page,
        out_of_path: mode == Some(Mode::Serve),
        not_ready: (object.status.as_ref())
            .and_then(|status| status.not_ready.as_ref())
            .filter(|_| {
                object
                    .status
                    .as_ref()
                    .is_some_and(|it| it.asleep_since.is_none())
            })
            .map(NotReady::cause),
        unreconciled: (object.status.as_ref()).is_none_or(|it| it.observed_generation.is_none()),
    }
}

fn port(
    object: &ElastiService,
    port: &ResolverPort,
    private: Option<&Service>,
) -> Option<RoutedPort> {
    let declared = (object.spec.ports.iter()).find(|declared| declared.port == port.port);
    let protocol = declared.map(|declared| declared.protocol);
    let protocol = protocol.or_else(|| {
        let ports = private?.spec.as_ref()?.ports.as_ref()?;
        let found = ports.iter().find(|found| found.port == port.port)?;
        by_app_protocol(found.app_protocol.as_deref()?)
    });
    let protocol = protocol.or_else(|| by_port_name(&port.name));
    // Probe responses and the waiting page only work if the port is treated as HTTP.
    let needs_http = !object.spec.probe_response.is_empty() || object.spec.waiting_page;
    let otherwise = if needs_http {
        Protocol::Http
    } else {
        Protocol::Tcp
    };
    Some(RoutedPort {
        number: u16::try_from(port.port).ok()?,
        resolver_port: u16::try_from(port.resolver_port).ok()?,
        protocol: protocol.unwrap_or(otherwise),
        ignore_empty: declared.is_some_and(|declared| declared.ignore_empty),
    })
}

fn by_service(slices: &[Arc<EndpointSlice>]) -> Slices<'_> {
    let mut found = Slices::default();
    for slice in slices {
        let meta = slice.meta();
        let owner = meta.labels.as_ref().and_then(|all| all.get(SERVICE_NAME));
        let (Some(owner), Some(namespace)) = (owner, &meta.namespace) else {
            continue;
        };
        let key = Key::new(namespace, owner);
        found.entry(key).or_default().push(slice);
    }
    found
}

/// The addresses of ready pods. EndpointSlices name ports as the Service does, and an unnamed port is
/// the Service's only one.
fn pods<'a>(
    ports: impl Iterator<Item = &'a ResolverPort>,
    slices: &[&EndpointSlice],
) -> PodAddresses {
    let mut pods = BTreeMap::new();
    for port in ports {
        let Ok(number) = u16::try_from(port.port) else {
            continue;
        };
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for slice in slices {
            let target = target(slice, &port.name);
            let endpoints = slice.endpoints.iter().flatten();
            let ready = endpoints.filter(|endpoint| is_ready(endpoint));
            let found = ready.filter_map(|endpoint| {
                let address: IpAddr = endpoint.addresses.first()?.parse().ok()?;
                Some(SocketAddr::new(address, target?))
            });
            addresses.extend(found);
        }
        addresses.sort_unstable();
        addresses.dedup();
        if !addresses.is_empty() {
            pods.insert(number, addresses);
        }
    }
    pods
}

fn target(slice: &EndpointSlice, name: &str) -> Option<u16> {
    let ports = slice.ports.iter().flatten();
    let mut fitting = ports.filter(|port| {
        let tcp = port
            .protocol
            .as_deref()
            .is_none_or(|spoken| spoken == "TCP");
        tcp && port.name.as_deref().unwrap_or_default() == name
    });
    fitting
        .next()
        .and_then(|port| u16::try_from(port.port?).ok())
}

fn is_ready(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    conditions.is_none_or(|conditions| conditions.ready != Some(false)) && !is_ending(endpoint)
}

fn is_ending(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    conditions.is_some_and(|conditions| conditions.terminating == Some(true))
}
