//! The data plane: where a new connection to the Service goes, as each node sees it.
//!
//! A node sees earlier states of the EndpointSlices, each with its own lag, and always in order.
//! Every connection goes to a random endpoint.

use std::{
    collections::{BTreeMap, VecDeque},
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use neap_idle::{api::labels::SERVICE_NAME, elasti_service::objects::is_ready};
use neap_kit::clock::{Clock, Uptime};
use neap_pocket::store::{Change, Object, Store};
use parking_lot::Mutex;

/// Two nodes with a resolver, and one without.
pub(crate) const NODES: usize = 3;

type Endpoints = Arc<[SocketAddr]>;

#[derive(Debug)]
pub(crate) struct DataPlane {
    clock: Clock,
    state: Mutex<PlaneState>,
}

#[derive(Debug)]
struct PlaneState {
    slices: BTreeMap<String, Vec<SocketAddr>>,
    nodes: [NodeView; NODES],
    rng: fastrand::Rng,
}

#[derive(Debug, Default)]
struct NodeView {
    lag: Duration,
    shown: Endpoints,
    coming: VecDeque<(Uptime, Endpoints)>,
}

impl DataPlane {
    /// Follows the EndpointSlices of `service`.
    pub(crate) fn new(store: &Store, service: &'static str, clock: Clock, seed: u64) -> Arc<Self> {
        let state = PlaneState {
            slices: BTreeMap::new(),
            nodes: Default::default(),
            rng: fastrand::Rng::with_seed(seed),
        };
        let state = Mutex::new(state);
        let plane = Arc::new(Self { clock, state });
        let follower = plane.clone();
        let follow = move |change, object: &Object| {
            let slice = serde_json::from_slice::<EndpointSlice>(object.json());
            let slice = slice.ok();
            let slice = slice.filter(|it| {
                it.labels()
                    .get(SERVICE_NAME)
                    .is_some_and(|it| it == service)
            });
            if let Some(slice) = slice {
                follower.apply(change, &slice);
            }
        };
        store.follow("discovery.k8s.io/endpointslices", Box::new(follow));
        plane
    }

    fn apply(&self, change: Change, slice: &EndpointSlice) {
        let now = self.clock.uptime();
        let mut state = self.state.lock();
        if change == Change::Deleted {
            state.slices.remove(&slice.name_any());
        } else {
            state.slices.insert(slice.name_any(), endpoints(slice));
        }
        let all: Endpoints = state.slices.values().flatten().copied().collect();
        for node in &mut state.nodes {
            let before = node.coming.back().map_or(Uptime::ZERO, |last| last.0);
            node.coming
                .push_back(((now + node.lag).max(before), all.clone()));
        }
    }

    /// Sets the lag of each node; one of them gets the maximum.
    pub(crate) fn lag(&self, most: Duration) {
        let mut state = self.state.lock();
        let PlaneState { nodes, rng, .. } = &mut *state;
        let farthest = rng.usize(..NODES);
        for (number, node) in nodes.iter_mut().enumerate() {
            let share = if number == farthest { 1.0 } else { rng.f64() };
            node.lag = most.mul_f64(share);
        }
    }

    /// The endpoints that connections from a node may go to now.
    pub(crate) fn shown(&self, node: usize) -> Endpoints {
        let mut state = self.state.lock();
        state.nodes[node].catch_up(self.clock.uptime());
        state.nodes[node].shown.clone()
    }

    /// The endpoint of a new connection.
    pub(crate) fn pick(&self, node: usize) -> Option<SocketAddr> {
        let shown = self.shown(node);
        self.state.lock().rng.choice(shown.iter()).copied()
    }
}

impl NodeView {
    fn catch_up(&mut self, now: Uptime) {
        while self.coming.front().is_some_and(|next| next.0 <= now) {
            if let Some((_, shown)) = self.coming.pop_front() {
                self.shown = shown;
            }
        }
    }
}

fn endpoints(slice: &EndpointSlice) -> Vec<SocketAddr> {
    let port = slice.ports.iter().flatten().find_map(|port| port.port);
    let port = port.and_then(|port| u16::try_from(port).ok());
    let endpoints = slice.endpoints.iter().flatten();
    let ready = endpoints.filter(|endpoint| is_ready(endpoint));
    let addresses = ready.flat_map(|endpoint| &endpoint.addresses);
    let addresses = addresses.filter_map(|address| address.parse::<IpAddr>().ok());
    addresses
        .filter_map(|address| Some(SocketAddr::new(address, port?)))
        .collect()
}
