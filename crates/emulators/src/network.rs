//! Several systems under their host names, without sockets.

use std::{collections::BTreeMap, sync::Arc};

use http::Request;
use neap_kit::client::{Body, Transport, TransportError, transport_fn};
use parking_lot::RwLock;
use tower::ServiceExt;

/// Systems under their host names. Cheap to clone; clones are the same network.
///
/// A client whose transport is [`Network::transport`] reaches them by their addresses, as it would
/// reach real ones; other hosts do not exist.
#[derive(Debug, Clone, Default)]
pub struct Network(Arc<RwLock<BTreeMap<String, Transport>>>);

impl Network {
    /// Mounts a system under a host name, with a port if its address has one.
    pub fn mount(&self, host: &str, system: Transport) -> &Self {
        self.0.write().insert(host.to_ascii_lowercase(), system);
        self
    }

    /// Takes a host off the network.
    pub fn unmount(&self, host: &str) {
        self.0.write().remove(&host.to_ascii_lowercase());
    }

    /// What leads a client to the systems.
    pub fn transport(&self) -> Transport {
        let network = self.clone();
        transport_fn(move |request: Request<Body>| {
            let system = network.find(&request);
            async move {
                let host = request.uri().host().unwrap_or_default();
                let unknown = || TransportError::NotSent(format!("no host {host:?}").into());
                system.ok_or_else(unknown)?.oneshot(request).await
            }
        })
    }

    fn find(&self, request: &Request<Body>) -> Option<Transport> {
        let name = request.uri().authority()?.as_str().to_ascii_lowercase();
        let hosts = self.0.read();
        let host = request.uri().host()?.to_ascii_lowercase();
        hosts.get(&name).or_else(|| hosts.get(&host)).cloned()
    }
}
