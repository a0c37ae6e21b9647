//! Opens and closes listeners as the routes require.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::{ObjectReference, Service},
    discovery::v1::EndpointSlice,
};
use kube::{Resource, ResourceExt};
use neap_kit::{
    clock::{Clock, Uptime},
    context::Context,
    event::{EventDraft, EventRecorder},
    key::Key,
    manager::Component,
    watch::{Cache, Index, WatchesStopped},
};
use tokio::{
    sync::{Notify, Semaphore},
    task::{AbortHandle, Id, JoinError, JoinSet},
};

use super::{
    decide::{Route, Routes, routes},
    listener::{AddressLost, CurrentRoute, Opened, ServiceSocket, serve},
};

const NAME: &str = "service-proxy";
const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";
/// The Event reason by which `neap status` finds addresses that are not served.
const NOT_SERVED: &str = "AddressNotServed";
/// The interval at which addresses that could not be bound are tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Default)]
pub struct ProxyOptions {
    /// The addresses on which node ports are bound.
    pub nodes: Vec<IpAddr>,
    /// The delay after which connections follow a change of slices, as on a slow data plane.
    pub lag: Duration,
    /// The address of the API server. Clients in pods get it from their environment, so its own
    /// Service need not be served.
    pub api: Option<String>,
    /// Connections at a time, at most; more wait in the kernel's queue. Each takes two descriptors of
    /// this process.
    pub max_connections: Option<usize>,
}

/// Forwards connections to Services to their pods.
pub fn component(context: &Context, options: ProxyOptions) -> Result<Component, WatchesStopped> {
    let (services, slices) = (
        context.cache::<Service>()?,
        context.cache::<EndpointSlice>()?,
    );
    let by_service = Index::new(&slices, |slice: &EndpointSlice| {
        let namespace = slice.namespace().unwrap_or_default();
        let name = slice.labels().get(SERVICE_NAME_LABEL);
        name.map(|name| Key::new(&namespace, name).to_string())
            .into_iter()
            .collect()
    });
    let changed = Arc::new(Notify::new());
    let (one, other) = (changed.clone(), changed.clone());
    services.subscribe(move |_| one.notify_one());
    slices.subscribe(move |_| other.notify_one());
    let mut proxy = Proxy {
        recorder: context.event_recorder(NAME),
        clock: context.clock,
        services: services.clone(),
        by_service,
        listeners: BTreeMap::new(),
        tasks: JoinSet::new(),
        kept_connections: BTreeMap::new(),
        pending: VecDeque::new(),
        applied: Routes::new(),
        room: Arc::new(Semaphore::new(
            options
                .max_connections
                .unwrap_or(Semaphore::MAX_PERMITS)
                .min(Semaphore::MAX_PERMITS),
        )),
        options,
    };
    Ok(Component::new(NAME, move |stop| async move {
        let work = async {
            tokio::join!(services.synced(), slices.synced());
            proxy.applied = proxy.wanted();
            let mut retry = proxy.update_listeners().await;
            loop {
                let due = proxy.pending.front().map(|(due, _)| *due);
                tokio::select! {
                    () = changed.notified() => proxy.queue_change(),
                    () = sleep_until(due, proxy.clock) => {
                        proxy.apply_next();
                        retry = proxy.update_listeners().await;
                    }
                    () = proxy.clock.sleep(RETRY_INTERVAL), if retry => retry = proxy.update_listeners().await,
                    Some(ended) = proxy.tasks.join_next_with_id() => {
                        retry |= proxy.handle_ended(ended).await;
                    }
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }))
}

/// Resolves at that time; never if there is none.
async fn sleep_until(due: Option<Uptime>, clock: Clock) {
    match due {
        Some(due) => clock.sleep_until(due).await,
        None => std::future::pending().await,
    }
}

struct Proxy {
    services: Cache<Service>,
    by_service: Index<EndpointSlice>,
    listeners: BTreeMap<SocketAddr, (Arc<CurrentRoute>, AbortHandle)>,
    tasks: JoinSet<AddressLost>,
    /// Connections accepted at addresses that another program has taken since.
    kept_connections: BTreeMap<SocketAddr, JoinSet<()>>,
    /// Observed routes that are not applied yet, each with the time when it will be.
    pending: VecDeque<(Uptime, Routes)>,
    /// The routes that are applied.
    applied: Routes,
    recorder: EventRecorder,
    clock: Clock,
    /// The connections of all listeners.
    room: Arc<Semaphore>,
    options: ProxyOptions,
}

impl Proxy {
    /// Queues the current routes until the lag has passed: each change has its own delay, also
    /// while another is pending.
    fn queue_change(&mut self) {
        let due = self.clock.uptime() + self.options.lag;
        let wanted = self.wanted();
        self.pending.push_back((due, wanted));
    }

    /// Applies the next queued routes.
    fn apply_next(&mut self) {
        if let Some((_, routes)) = self.pending.pop_front() {
            self.applied = routes;
        }
    }

    /// The routes of the current Services and slices.
    fn wanted(&self) -> Routes {
        let services = self.services.list("");
        let slices: BTreeMap<Key, Vec<Arc<EndpointSlice>>> = services
            .iter()
            .map(|service| Key::of(&**service))
            .map(|key| (key.clone(), self.by_service.get(&key.to_string())))
            .collect();
        let of = |key: &Key| slices[key].iter().map(|slice| &**slice).collect();
        let services = services.iter().map(|service| &**service);
        routes(services, of, &self.options.nodes)
    }

    /// Opens, updates and closes listeners. True if an address has to be tried again.
    async fn update_listeners(&mut self) -> bool {
        let mut wanted = self.applied.clone();
        self.kept_connections
            .retain(|address, _| wanted.contains_key(address));
        self.listeners.retain(|address, (current, task)| {
            let Some(route) = wanted.remove(address) else {
                task.abort();
                return false;
            };
            current.set(route);
            true
        });
        let mut retry = false;
        for (address, route) in wanted {
            match ServiceSocket::bind(address) {
                Ok(socket) => self.open(address, socket, route),
                Err(error) => {
                    retry = true;
                    self.record_not_served(address, &route, &error).await;
                }
            }
        }
        retry
    }

    fn open(&mut self, address: SocketAddr, socket: ServiceSocket, route: Route) {
        let current = Arc::new(CurrentRoute::new(route));
        let connections = self.kept_connections.remove(&address).unwrap_or_default();
        let opened = Opened {
            socket,
            address,
            connections,
            room: self.room.clone(),
        };
        let serving = serve(opened, current.clone(), self.clock);
        let task = self.tasks.spawn(serving);
        self.listeners.insert(address, (current, task));
    }

    /// Handles a listener that has ended. True if its address has to be tried again.
    async fn handle_ended(&mut self, ended: Result<(Id, AddressLost), JoinError>) -> bool {
        let (id, error, connections) = match ended {
            Ok((id, lost)) => (id, lost.error, lost.connections),
            Err(error) => (error.id(), io::Error::other(error), JoinSet::new()),
        };
        let mut all = self.listeners.iter();
        // Listeners that were closed on purpose are not in the map.
        let Some((&address, _)) = all.find(|(_, (_, task))| task.id() == id) else {
            return false;
        };
        let Some((current, _)) = self.listeners.remove(&address) else {
            return false;
        };
        self.kept_connections.insert(address, connections);
        self.record_not_served(address, &current.route(), &error)
            .await;
        true
    }

    async fn record_not_served(&self, address: SocketAddr, route: &Route, error: &io::Error) {
        let Some(service) = self.services.get(&route.service) else {
            return;
        };
        let about: ObjectReference = service.object_ref(&());
        let instead = alternative(address, route, self.options.api.as_deref());
        let event = not_served(address, instead.as_deref(), error);
        self.recorder.record_for(about, &event).await;
    }
}

/// Another way to reach the Service of an address, if there is one.
fn alternative(address: SocketAddr, route: &Route, api: Option<&str>) -> Option<String> {
    let node_port = route.node_port.filter(|port| *port != address.port());
    if let Some(port) = node_port {
        return Some(format!("use the node port {port}"));
    }
    let is_api = route.service == Key::new("default", "kubernetes");
    let api = api.filter(|_| is_api)?;
    Some(format!(
        "clients in pods connect to {api} as KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT say"
    ))
}

/// The Event for an address that cannot be bound: a warning only if there is no alternative.
fn not_served(address: SocketAddr, instead: Option<&str>, error: &io::Error) -> EventDraft {
    let (why, remedy) = match error.kind() {
        io::ErrorKind::PermissionDenied => (
            "ports below 1024 need root".to_owned(),
            "give the service a port from 1024 on, or type NodePort",
        ),
        io::ErrorKind::AddrInUse => (
            "another program has the port".to_owned(),
            "if it is a pod that listens on all addresses, make it listen on its POD_IP",
        ),
        _ => (error.to_string(), "it is retried automatically"),
    };
    let message = |remedy: &str| format!("{address} is not served: {why}; {remedy}");
    match instead {
        Some(instead) => EventDraft::normal(NOT_SERVED, message(instead)),
        None => EventDraft::warning(NOT_SERVED, message(remedy)),
    }
}

#[cfg(test)]
mod tests {
    use neap_kit::event::EventType;

    use super::*;

    #[test]
    fn an_address_that_is_not_served_is_a_warning_unless_there_is_an_alternative() {
        let decided = |namespace: &str, name: &str, node_port| {
            let route = Route {
                service: Key::new(namespace, name),
                backends: Vec::new(),
                sticky: false,
                node_port,
            };
            let address = "127.1.128.5:80".parse().unwrap();
            let instead = alternative(address, &route, Some("127.0.0.1:6443"));
            let refused = io::ErrorKind::PermissionDenied.into();
            let event = not_served(address, instead.as_deref(), &refused);
            let start = "127.1.128.5:80 is not served: ports below 1024 need root; ";
            (event.type_, event.message.replace(start, ""))
        };
        let (type_, message) = decided("shop", "web", None);
        assert_eq!(type_, EventType::Warning);
        assert_eq!(
            message,
            "give the service a port from 1024 on, or type NodePort"
        );
        let event = decided("shop", "web", Some(30080));
        assert_eq!(
            event,
            (EventType::Normal, "use the node port 30080".to_owned())
        );
        // The node port itself is not its own alternative.
        assert_eq!(decided("shop", "web", Some(80)).0, EventType::Warning);
        let (type_, message) = decided("default", "kubernetes", None);
        assert_eq!(type_, EventType::Normal);
        assert!(message.contains("connect to 127.0.0.1:6443"), "{message}");
    }
}
