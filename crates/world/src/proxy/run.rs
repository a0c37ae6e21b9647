//! Keeps the listeners that there should be.

use std::{
    collections::{BTreeMap, VecDeque},
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
    clock::{Clock, Uptime},
    event::{Note, Recorder},
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended, Index},
};
use tokio::{
    sync::Notify,
    task::{AbortHandle, Id, JoinError, JoinSet},
};

use super::{
    decide::{Route, Routes, routes},
    listener::{Door, Lead, Lost, attend},
};

const NAME: &str = "service-proxy";
const SERVICE: &str = "kubernetes.io/service-name";
/// The reason by which `neap status` knows what is said of addresses.
const NOT_SERVED: &str = "AddressNotServed";
/// What could not be listened on is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// How the proxy works.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where node ports are listened on.
    pub nodes: Vec<IpAddr>,
    /// So much later than the slices say do connections follow them, as on a slow data plane.
    pub lag: Duration,
    /// Where the API listens. Clients in pods are told this, so its own service may go unserved.
    pub api: Option<String>,
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
        left: BTreeMap::new(),
        said: VecDeque::new(),
        followed: Routes::new(),
        options,
    };
    Ok(Service::new(NAME, move |stop| async move {
        let work = async {
            tokio::join!(services.synced(), slices.synced());
            proxy.followed = proxy.wanted();
            let mut again = proxy.follow().await;
            loop {
                let due = proxy.said.front().map(|(due, _)| *due);
                tokio::select! {
                    () = changed.notified() => proxy.hear(),
                    () = come(due, proxy.clock) => {
                        proxy.catch_up();
                        again = proxy.follow().await;
                    }
                    () = proxy.clock.sleep(TRY_AGAIN), if again => again = proxy.follow().await,
                    Some(ended) = proxy.tasks.join_next_with_id() => {
                        again |= proxy.part(ended).await;
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

/// Resolves when that time has come, if there is one.
async fn come(due: Option<Uptime>, clock: Clock) {
    match due {
        Some(due) => clock.sleep_until(due).await,
        None => std::future::pending().await,
    }
}

struct Proxy {
    services: Cache<Svc>,
    by_service: Index<EndpointSlice>,
    listeners: BTreeMap<SocketAddr, (Arc<Lead>, AbortHandle)>,
    tasks: JoinSet<Lost>,
    /// Connections that were made at addresses which somebody else has now.
    left: BTreeMap<SocketAddr, JoinSet<()>>,
    /// What was said and is not followed yet, and when it will be.
    said: VecDeque<(Uptime, Routes)>,
    /// What connections go by.
    followed: Routes,
    recorder: Recorder,
    clock: Clock,
    options: Options,
}

impl Proxy {
    /// Remembers what is said now for when it is to be followed: each change that much later, also one
    /// that comes while another is waited for.
    fn hear(&mut self) {
        let due = self.clock.uptime() + self.options.lag;
        let wanted = self.wanted();
        self.said.push_back((due, wanted));
    }

    /// Goes by the next that was said.
    fn catch_up(&mut self) {
        if let Some((_, routes)) = self.said.pop_front() {
            self.followed = routes;
        }
    }

    /// Which listeners there should be by now, and to whom they lead.
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

    /// Opens, turns and closes listeners; whether something has to be tried again.
    async fn follow(&mut self) -> bool {
        let mut wanted = self.followed.clone();
        self.left.retain(|address, _| wanted.contains_key(address));
        self.listeners.retain(|address, (lead, task)| {
            let Some(route) = wanted.remove(address) else {
                task.abort();
                return false;
            };
            lead.to(route);
            true
        });
        let mut again = false;
        for (address, route) in wanted {
            match Door::at(address) {
                Ok(door) => self.open(address, door, route),
                Err(error) => {
                    again = true;
                    self.complain(address, &route, &error).await;
                }
            }
        }
        again
    }

    fn open(&mut self, address: SocketAddr, door: Door, route: Route) {
        let lead = Arc::new(Lead::new(route));
        let passed = self.left.remove(&address).unwrap_or_default();
        let attended = attend(door, address, lead.clone(), passed, self.clock);
        let task = self.tasks.spawn(attended);
        self.listeners.insert(address, (lead, task));
    }

    /// Takes leave of a listener that has ended; whether its address has to be tried again.
    async fn part(&mut self, ended: Result<(Id, Lost), JoinError>) -> bool {
        let (id, error, passed) = match ended {
            Ok((id, lost)) => (id, lost.error, lost.passed),
            Err(error) => (error.id(), io::Error::other(error), JoinSet::new()),
        };
        let mut all = self.listeners.iter();
        // Nobody wants to have those that were closed.
        let Some((&address, _)) = all.find(|(_, (_, task))| task.id() == id) else {
            return false;
        };
        let Some((lead, _)) = self.listeners.remove(&address) else {
            return false;
        };
        self.left.insert(address, passed);
        self.complain(address, &lead.route(), &error).await;
        true
    }

    async fn complain(&self, address: SocketAddr, route: &Route, error: &io::Error) {
        let Some(service) = self.services.get(&route.service) else {
            return;
        };
        let about: ObjectReference = service.object_ref(&());
        let instead = way_round(address, route, self.options.api.as_deref());
        let note = told(address, instead.as_deref(), error);
        self.recorder.tell_of(about, &note).await;
    }
}

/// How else whoever wants to reach an address gets there, if there is a way.
fn way_round(address: SocketAddr, route: &Route, api: Option<&str>) -> Option<String> {
    let node_port = route.node_port.filter(|port| *port != address.port());
    if let Some(port) = node_port {
        return Some(format!("use the node port {port}"));
    }
    let is_api = route.service == Key::new("default", "kubernetes");
    let api = api.filter(|_| is_api)?;
    Some(format!(
        "clients in pods are led to {api} by KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT"
    ))
}

/// What is said of an address that cannot be listened on: a warning only if there is no way round.
fn told(address: SocketAddr, instead: Option<&str>, error: &io::Error) -> Note {
    let (why, remedy) = match error.kind() {
        io::ErrorKind::PermissionDenied => (
            "ports below 1024 need root".to_owned(),
            "give the service a port from 1024 on, or type NodePort",
        ),
        io::ErrorKind::AddrInUse => (
            "another program has the port".to_owned(),
            "if that is a pod which listens on all addresses, let it listen on its POD_IP",
        ),
        _ => (error.to_string(), "it is tried again by itself"),
    };
    let words = |remedy: &str| format!("{address} is not served: {why}; {remedy}");
    match instead {
        Some(instead) => Note::normal(NOT_SERVED, words(instead)),
        None => Note::warning(NOT_SERVED, words(remedy)),
    }
}

#[cfg(test)]
mod tests {
    use neap_kit::event::Weight;

    use super::*;

    #[test]
    fn an_address_that_is_not_served_is_a_worry_unless_there_is_a_way_round() {
        let say = |namespace: &str, name: &str, node_port| {
            let route = Route {
                service: Key::new(namespace, name),
                backends: Vec::new(),
                sticky: false,
                node_port,
            };
            let address = "127.1.128.5:80".parse().unwrap();
            let instead = way_round(address, &route, Some("127.0.0.1:6443"));
            let refused = io::ErrorKind::PermissionDenied.into();
            let note = told(address, instead.as_deref(), &refused);
            let start = "127.1.128.5:80 is not served: ports below 1024 need root; ";
            (note.weight, note.message.replace(start, ""))
        };
        let (weight, words) = say("shop", "web", None);
        assert_eq!(weight, Weight::Warning);
        assert_eq!(
            words,
            "give the service a port from 1024 on, or type NodePort"
        );
        let noted = say("shop", "web", Some(30080));
        assert_eq!(
            noted,
            (Weight::Normal, "use the node port 30080".to_owned())
        );
        // The node port itself is no way round it.
        assert_eq!(say("shop", "web", Some(80)).0, Weight::Warning);
        let (weight, words) = say("default", "kubernetes", None);
        assert_eq!(weight, Weight::Normal);
        assert!(words.contains("led to 127.0.0.1:6443"), "{words}");
    }
}
