//! The data plane: where a new connection to the Service goes, as each node sees it.
//!
//! A node sees what the slices of the Service said a while ago, each one another while, and always
//! in the order in which it was said. Every connection goes to any of those that are there.

use std::{
    collections::{BTreeMap, VecDeque},
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use neap_idle::service::objects::{SERVICE_NAME, is_ready};
use neap_kit::clock::{Clock, Uptime};
use neap_pocket::store::{Change, Object, Store};
use parking_lot::Mutex;

/// Two with a resolver, and one without.
pub(crate) const NODES: usize = 3;

type Places = Arc<[SocketAddr]>;

#[derive(Debug)]
pub(crate) struct Plane {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    slices: BTreeMap<String, Vec<SocketAddr>>,
    nodes: [Node; NODES],
    dice: fastrand::Rng,
}

#[derive(Debug, Default)]
struct Node {
    lag: Duration,
    shown: Places,
    coming: VecDeque<(Uptime, Places)>,
}

impl Plane {
    /// Follows the slices of `service`.
    pub(crate) fn new(store: &Store, service: &'static str, clock: Clock, seed: u64) -> Arc<Self> {
        let state = State {
            slices: BTreeMap::new(),
            nodes: Default::default(),
            dice: fastrand::Rng::with_seed(seed),
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
                follower.take(change, &slice);
            }
        };
        store.follow("discovery.k8s.io/endpointslices", Box::new(follow));
        plane
    }

    fn take(&self, change: Change, slice: &EndpointSlice) {
        let now = self.clock.uptime();
        let mut state = self.state.lock();
        if change == Change::Deleted {
            state.slices.remove(&slice.name_any());
        } else {
            state.slices.insert(slice.name_any(), places(slice));
        }
        let all: Places = state.slices.values().flatten().copied().collect();
        for node in &mut state.nodes {
            let before = node.coming.back().map_or(Uptime::ZERO, |last| last.0);
            node.coming
                .push_back(((now + node.lag).max(before), all.clone()));
        }
    }

    /// How far each node lags from now on: one of them as far as may be.
    pub(crate) fn lag(&self, most: Duration) {
        let mut state = self.state.lock();
        let State { nodes, dice, .. } = &mut *state;
        let farthest = dice.usize(..NODES);
        for (number, node) in nodes.iter_mut().enumerate() {
            let share = if number == farthest { 1.0 } else { dice.f64() };
            node.lag = most.mul_f64(share);
        }
    }

    /// Where all connections from a node may go now.
    pub(crate) fn shown(&self, node: usize) -> Places {
        let mut state = self.state.lock();
        state.nodes[node].catch_up(self.clock.uptime());
        state.nodes[node].shown.clone()
    }

    /// Where one goes.
    pub(crate) fn pick(&self, node: usize) -> Option<SocketAddr> {
        let shown = self.shown(node);
        self.state.lock().dice.choice(shown.iter()).copied()
    }
}

impl Node {
    fn catch_up(&mut self, now: Uptime) {
        while self.coming.front().is_some_and(|next| next.0 <= now) {
            if let Some((_, shown)) = self.coming.pop_front() {
                self.shown = shown;
            }
        }
    }
}

fn places(slice: &EndpointSlice) -> Vec<SocketAddr> {
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
