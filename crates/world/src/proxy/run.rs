//! Keeps the listeners that there should be.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::{ObjectReference, Service as Svc},
    discovery::v1::EndpointSlice,
};
use kube::{Resource, ResourceExt};
use neap_kit::{
    clock::Clock,
    event::{Note, Recorder},
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended, Index},
};
use tokio::{
    net::TcpListener,
    sync::Notify,
    task::{AbortHandle, JoinSet},
};

use super::{
    decide::{Route, routes},
    listener::{Lead, listen},
};

const NAME: &str = "service-proxy";
const SERVICE: &str = "kubernetes.io/service-name";
/// What could not be listened on is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// How the proxy works.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where node ports are listened on.
    pub nodes: Vec<IpAddr>,
    /// So much later than the slices say do connections follow them, as on a slow data plane.
    pub lag: Duration,
}

/// Passes connections to services on to their pods.
pub fn service(site: &Site, options: Options) -> Result<Service, Ended> {
    let (services, slices) = (site.all::<Svc>()?, site.all::<EndpointSlice>()?);
    let by_service = Index::new(&slices, |slice: &EndpointSlice| {
        let namespace = slice.namespace().unwrap_or_default();
        let name = slice.labels().get(SERVICE);
        name.map(|name| Key::new(&namespace, name).to_string())
            .into_iter()
            .collect()
    });
    let changed = Arc::new(Notify::new());
    let (one, other) = (changed.clone(), changed.clone());
    services.follow(move |_| one.notify_one());
    slices.follow(move |_| other.notify_one());
    let mut proxy = Proxy {
        recorder: site.recorder(NAME),
        clock: site.clock,
        services: services.clone(),
        by_service,
        listeners: BTreeMap::new(),
        tasks: JoinSet::new(),
        options,
    };
    Ok(Service::new(NAME, move |stop| async move {
        let work = async {
            tokio::join!(services.synced(), slices.synced());
            loop {
                let again = proxy.follow().await;
                tokio::select! {
                    () = changed.notified() => proxy.clock.sleep(proxy.options.lag).await,
                    () = proxy.clock.sleep(TRY_AGAIN), if again => {}
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }))
}

struct Proxy {
    services: Cache<Svc>,
    by_service: Index<EndpointSlice>,
    listeners: BTreeMap<SocketAddr, (Arc<Lead>, AbortHandle)>,
    tasks: JoinSet<()>,
    recorder: Recorder,
    clock: Clock,
    options: Options,
}

impl Proxy {
    /// Opens, turns and closes listeners; whether something has to be tried again.
    async fn follow(&mut self) -> bool {
        let services = self.services.list("");
        let slices: BTreeMap<Key, Vec<Arc<EndpointSlice>>> = services
            .iter()
            .map(|service| Key::of(&**service))
            .map(|key| (key.clone(), self.by_service.get(&key.to_string())))
            .collect();
        let of = |key: &Key| slices[key].iter().map(|slice| &**slice).collect();
        let mut wanted = routes(
            services.iter().map(|service| &**service),
            of,
            &self.options.nodes,
        );
        self.listeners.retain(|address, (lead, task)| {
            let Some(route) = wanted.remove(address) else {
                task.abort();
                return false;
            };
            lead.to(route);
            true
        });
        while self.tasks.try_join_next().is_some() {}
        let mut again = false;
        for (address, route) in wanted {
            match TcpListener::bind(address).await {
                Ok(listener) => self.open(address, listener, route),
                Err(error) => {
                    again = true;
                    self.complain(address, &route, &error).await;
                }
            }
        }
        again
    }

    fn open(&mut self, address: SocketAddr, listener: TcpListener, route: Route) {
        let lead = Arc::new(Lead::new(route));
        let task = self.tasks.spawn(listen(listener, lead.clone(), self.clock));
        self.listeners.insert(address, (lead, task));
    }

    async fn complain(&self, address: SocketAddr, route: &Route, error: &io::Error) {
        let Some(service) = self.services.get(&route.service) else {
            return;
        };
        let about: ObjectReference = service.object_ref(&());
        let note = Note::warning("AddressNotServed", advice(address, route, error));
        self.recorder.tell_of(about, &note).await;
    }
}

/// What to do about an address that cannot be listened on.
fn advice(address: SocketAddr, route: &Route, error: &io::Error) -> String {
    let instead = route.node_port.map_or_else(
        || "give the service a port from 1024 on, or type NodePort".to_owned(),
        |port| format!("use the node port {port}"),
    );
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{address} is not served: ports below 1024 need root; {instead}")
        }
        _ => format!("{address} is not served: {error}; {instead}"),
    }
}
