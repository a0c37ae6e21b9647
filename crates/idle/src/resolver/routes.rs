//! Maps ports and hosts to services and their ready pods.
//!
//! The table is a value: [`RouteTable::build`] makes it from objects, and it is published as a whole, so
//! a reader never sees half of a change.

mod build;
mod protocol;
mod retired;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{Arc, LazyLock},
    time::Duration,
};

use neap_kit::key::Key;
use tokio::sync::watch;

use super::http::ProbeRules;
use crate::api::{NotReadyCause, Protocol};

pub use self::build::{RouteDefaults, RouteObjects};
pub(super) use self::retired::RetiredRoutes;

/// The label of private Services and, through them, of their EndpointSlices.
pub const PRIVATE_SERVICE_LABEL: &str = "idle.neaptide.dev/private";

/// The port of a host without a port.
const HTTP_PORT: u16 = 80;
/// The port of HTTPS.
const HTTPS_PORT: u16 = 443;

/// All routes, services and ready pods.
#[derive(Debug, Clone, Default)]
pub struct RouteTable {
    routes: BTreeMap<u16, Arc<Route>>,
    services: BTreeMap<Key, Arc<RoutedService>>,
    pods: BTreeMap<Key, Arc<PodAddresses>>,
    /// Services with a pod that is not ready yet.
    starting: BTreeSet<Key>,
}

/// Addresses of ready pods, by the number of the Service's port.
pub type PodAddresses = BTreeMap<u16, Vec<SocketAddr>>;

/// The service and port that a port of the resolver stands for.
#[derive(Debug, Clone)]
pub struct Route {
    /// The service.
    pub service: Arc<RoutedService>,
    /// One of its ports.
    pub port: RoutedPort,
}

/// A port of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutedPort {
    /// The port of the Service.
    pub number: u16,
    /// The port that the resolver listens on for it.
    pub resolver_port: u16,
    /// The protocol of the port.
    pub protocol: Protocol,
    /// Connections that close without a byte do not wake the service.
    pub ignore_empty: bool,
}

/// A service that may sleep, with what the resolver needs to serve its clients.
#[derive(Debug, Clone)]
pub struct RoutedService {
    /// Namespace and name of the Service.
    pub key: Key,
    /// The ports, in the order of the status.
    pub ports: Vec<RoutedPort>,
    /// The longest that a request is held.
    pub deadline: Duration,
    /// The limits of its queue.
    pub limits: HoldLimits,
    /// Requests that are answered without waking it.
    pub probes: Arc<ProbeRules>,
    /// Browsers get a page that reloads until the service is awake.
    pub waiting_page: bool,
    /// The resolvers are no longer in its path, so clients should reconnect.
    pub out_of_path: bool,
    /// Why none of its pods is ready, as far as the operator knows.
    pub not_ready: Option<NotReadyCause>,
    /// No Neaptide operator has reconciled it yet, so its ports are unknown: KubeElasti's operator may
    /// have routed its clients here.
    pub unreconciled: bool,
}

/// The limits of a service's queue in one resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldLimits {
    /// Upper limit on held requests and connections.
    pub requests: usize,
    /// Upper limit on the memory that they use.
    pub bytes: usize,
    /// Upper limit on the released requests of each pod that are not answered yet.
    pub per_pod: usize,
}

impl RouteTable {
    /// The route of a port of this resolver.
    pub fn route(&self, resolver_port: u16) -> Option<&Arc<Route>> {
        self.routes.get(&resolver_port)
    }

    /// All routes, by the port that this resolver listens on.
    pub fn routes(&self) -> &BTreeMap<u16, Arc<Route>> {
        &self.routes
    }

    /// A service by its namespace and name.
    pub fn service(&self, key: &Key) -> Option<&Arc<RoutedService>> {
        self.services.get(key)
    }

    /// All services.
    pub fn services(&self) -> impl Iterator<Item = &Arc<RoutedService>> {
        self.services.values()
    }

    /// The ready pods of a service; none while it sleeps.
    pub fn pods(&self, key: &Key) -> Arc<PodAddresses> {
        static NONE: LazyLock<Arc<PodAddresses>> = LazyLock::new(Arc::default);
        self.pods.get(key).unwrap_or(&NONE).clone()
    }

    /// Whether a service has a pod that is not ready yet.
    pub fn is_starting(&self, key: &Key) -> bool {
        self.starting.contains(key)
    }
}

impl RoutedService {
    /// The port for TLS clients on the shared port: one that speaks TLS, or else 443.
    pub fn secure_port(&self) -> Option<&RoutedPort> {
        let ports = || self.ports.iter();
        ports()
            .find(|port| port.protocol == Protocol::Tls)
            .or_else(|| ports().find(|port| port.number == HTTPS_PORT))
    }

    /// The port with this number. Without a number it is 80, or else the first that speaks HTTP, or else
    /// the first. A request for a service that is not reconciled yet is held until its ports are known.
    pub fn port(&self, number: Option<u16>) -> Option<RoutedPort> {
        if self.unreconciled && self.ports.is_empty() {
            return Some(RoutedPort {
                number: number.unwrap_or(HTTP_PORT),
                resolver_port: 0,
                protocol: Protocol::Http,
                ignore_empty: false,
            });
        }
        let ports = || self.ports.iter();
        if let Some(number) = number {
            return ports().find(|port| port.number == number).cloned();
        }
        let web = ports().find(|port| port.number == HTTP_PORT);
        web.or_else(|| ports().find(|port| port.protocol == Protocol::Http))
            .or_else(|| ports().next())
            .cloned()
    }
}

/// A reader of the latest route table, which is replaced as a whole.
#[derive(Debug, Clone)]
pub struct RouteTableReader(watch::Receiver<Arc<RouteTable>>);

impl RouteTableReader {
    /// A sender that publishes tables, and a reader of them.
    pub fn new() -> (watch::Sender<Arc<RouteTable>>, Self) {
        let (publish, read) = watch::channel(Arc::default());
        (publish, Self(read))
    }

    /// The latest table.
    pub fn current(&self) -> Arc<RouteTable> {
        self.0.borrow().clone()
    }

    /// Resolves to the next table that this reader has not seen; `None` once the sender is gone.
    pub async fn changed(&mut self) -> Option<Arc<RouteTable>> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }
}
