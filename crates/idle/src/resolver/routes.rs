//! Who is meant by a connection, and which pods can take it.
//!
//! The table is a value: it is made from objects by [`Table::of`] and published whole, so whoever
//! looks something up never sees half of a change.

mod build;
mod linger;
mod protocol;
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

use super::http::Probes;
use crate::api::Protocol;

pub use self::build::{Defaults, Objects};
pub(super) use self::linger::Lingering;

/// A label that the private Service of every service has, and with it its EndpointSlices.
pub const PRIVATE: &str = "idle.neaptide.dev/private";

/// The port of HTTP where none is named.
const WEB: u16 = 80;
/// The port of HTTP over TLS.
const SECURE: u16 = 443;

/// Everything that can be looked up.
#[derive(Debug, Clone, Default)]
pub struct Table {
    routes: BTreeMap<u16, Arc<Route>>,
    services: BTreeMap<Key, Arc<Service>>,
    pods: BTreeMap<Key, Arc<Pods>>,
    /// Services that have a pod which is not ready yet.
    starting: BTreeSet<Key>,
}

/// Addresses that take connections, by the number of the Service's port.
pub type Pods = BTreeMap<u16, Vec<SocketAddr>>;

/// What comes in on one port of a resolver.
#[derive(Debug, Clone)]
pub struct Route {
    /// For whom it is.
    pub service: Arc<Service>,
    /// Which of its ports is meant.
    pub port: Port,
}

/// A port of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its number, as clients of the Service know it.
    pub number: u16,
    /// Where a resolver listens for it.
    pub resolver_port: u16,
    /// What is spoken there.
    pub protocol: Protocol,
    /// Whoever connects and closes without a byte does not wake the service.
    pub ignore_empty: bool,
}

/// A service that may sleep, as far as its clients meet it.
#[derive(Debug, Clone)]
pub struct Service {
    /// Its namespace and name.
    pub key: Key,
    /// Its ports, in the order of its status.
    pub ports: Vec<Port>,
    /// So long a request is held at most.
    pub deadline: Duration,
    /// How much is held.
    pub limits: Limits,
    /// What is answered without waking it.
    pub probes: Arc<Probes>,
    /// Browsers get a page that waits.
    pub waiting_page: bool,
    /// Resolvers are no longer in its path, so clients that are still here should connect anew.
    pub out_of_path: bool,
    /// No operator of ours has looked at it yet, so that its ports are not known: one of KubeElasti
    /// may have led its clients here.
    pub unclaimed: bool,
}

/// How much is held for a service, in one resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// So many requests or connections.
    pub requests: usize,
    /// So many bytes of them.
    pub bytes: usize,
    /// So many of those that waited are sent to each pod at a time.
    pub per_pod: usize,
}

impl Table {
    /// Who is meant on a port of this resolver.
    pub fn route(&self, resolver_port: u16) -> Option<&Arc<Route>> {
        self.routes.get(&resolver_port)
    }

    /// All routes by the port that this resolver listens on.
    pub fn routes(&self) -> &BTreeMap<u16, Arc<Route>> {
        &self.routes
    }

    /// The service of this name.
    pub fn service(&self, key: &Key) -> Option<&Arc<Service>> {
        self.services.get(key)
    }

    /// All services.
    pub fn services(&self) -> impl Iterator<Item = &Arc<Service>> {
        self.services.values()
    }

    /// The addresses that take connections for a service; none while it sleeps.
    pub fn pods(&self, key: &Key) -> Arc<Pods> {
        static NONE: LazyLock<Arc<Pods>> = LazyLock::new(Arc::default);
        self.pods.get(key).unwrap_or(&NONE).clone()
    }

    /// Whether a service has a pod somewhere that is not ready yet.
    pub fn is_starting(&self, key: &Key) -> bool {
        self.starting.contains(key)
    }
}

impl Service {
    /// The port that clients of TLS mean, where they name nothing but the service.
    pub fn secure_port(&self) -> Option<&Port> {
        let ports = || self.ports.iter();
        ports()
            .find(|port| port.protocol == Protocol::Tls)
            .or_else(|| ports().find(|port| port.number == SECURE))
    }

    /// The port that a number means. If none is named it is 80, as everywhere, or else the first
    /// that speaks HTTP. Where ports are not known yet, whoever came is held until they are.
    pub fn port(&self, number: Option<u16>) -> Option<Port> {
        if self.unclaimed && self.ports.is_empty() {
            return Some(Port {
                number: number.unwrap_or(WEB),
                resolver_port: 0,
                protocol: Protocol::Http,
                ignore_empty: false,
            });
        }
        let ports = || self.ports.iter();
        if let Some(number) = number {
            return ports().find(|port| port.number == number).cloned();
        }
        let web = ports().find(|port| port.number == WEB);
        web.or_else(|| ports().find(|port| port.protocol == Protocol::Http))
            .or_else(|| ports().next())
            .cloned()
    }
}

/// A table that is replaced as a whole, and those who read it.
#[derive(Debug, Clone)]
pub struct Tables(watch::Receiver<Arc<Table>>);

impl Tables {
    /// Readers of what is published through the sender.
    pub fn new() -> (watch::Sender<Arc<Table>>, Self) {
        let (publish, read) = watch::channel(Arc::default());
        (publish, Self(read))
    }

    /// The table as it is now.
    pub fn now(&self) -> Arc<Table> {
        self.0.borrow().clone()
    }

    /// Resolves to the next table that this reader has not seen; to nothing once there is none.
    pub async fn next(&mut self) -> Option<Arc<Table>> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }
}
