//! The routes from addresses to pods. Pure.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use k8s_openapi::api::{
    core::v1::{Service, ServicePort},
    discovery::v1::EndpointSlice,
};
use neap_kit::key::Key;

/// The backends of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// The Service of the address.
    pub(super) service: Key,
    /// The addresses of the pods.
    pub(super) backends: Vec<SocketAddr>,
    /// Whether a client always gets the same pod (`sessionAffinity: ClientIP`).
    pub(super) sticky: bool,
    /// The node port of the same Service port.
    pub(super) node_port: Option<u16>,
}

/// Routes by listening address.
pub(super) type Routes = BTreeMap<SocketAddr, Route>;

/// All routes of these Services and slices; node ports are bound on `nodes`.
pub(super) fn routes<'a>(
    services: impl Iterator<Item = &'a Service>,
    slices_of: impl Fn(&Key) -> Vec<&'a EndpointSlice>,
    nodes: &[IpAddr],
) -> Routes {
    let mut routes = Routes::new();
    for service in services {
        let key = Key::of(service);
        let Some(spec) = &service.spec else {
            continue;
        };
        let address = spec
            .cluster_ip
            .as_deref()
            .and_then(|address| address.parse::<IpAddr>().ok());
        let slices = slices_of(&key);
        for port in spec.ports.iter().flatten().filter(|port| is_tcp(port)) {
            let node_port = port.node_port.and_then(|port| u16::try_from(port).ok());
            let route = Route {
                service: key.clone(),
                backends: backends(&slices, port),
                sticky: spec.session_affinity.as_deref() == Some("ClientIP"),
                node_port,
            };
            let own = address.zip(u16::try_from(port.port).ok());
            let at_nodes = nodes.iter().filter_map(|&node| Some((node, node_port?)));
            let listened = own.into_iter().chain(at_nodes).map(SocketAddr::from);
            routes.extend(listened.map(|address| (address, route.clone())));
        }
    }
    routes
}

fn is_tcp(port: &ServicePort) -> bool {
    port.protocol.as_deref().unwrap_or("TCP") == "TCP"
}

/// The ready pods behind a port; if there are none, those that still serve while they terminate.
fn backends(slices: &[&EndpointSlice], port: &ServicePort) -> Vec<SocketAddr> {
    let (mut ready, mut ending) = (Vec::new(), Vec::new());
    for slice in slices {
        let name = |name: &Option<String>| name.clone().unwrap_or_default();
        let mut ports = slice.ports.iter().flatten();
        let found = ports.find(|one| name(&one.name) == name(&port.name));
        let Some(number) = found
            .and_then(|one| one.port)
            .and_then(|port| u16::try_from(port).ok())
        else {
            continue;
        };
        for endpoint in slice.endpoints.iter().flatten() {
            let conditions = endpoint.conditions.clone().unwrap_or_default();
            let is_ready = conditions.ready.unwrap_or(true);
            let answers =
                conditions.serving.unwrap_or(is_ready) && conditions.terminating == Some(true);
            let addresses = endpoint
                .addresses
                .iter()
                .filter_map(|one| one.parse::<IpAddr>().ok());
            let addresses = addresses.map(|address| SocketAddr::from((address, number)));
            match (is_ready, answers) {
                (true, _) => ready.extend(addresses),
                (false, true) => ending.extend(addresses),
                (false, false) => {}
            }
        }
    }
    let mut chosen = if ready.is_empty() { ending } else { ready };
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}
