//! Resolvers as in their processes, except for the network.

use std::{
    collections::BTreeSet,
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use anyhow::Result;
use futures::{FutureExt, future::BoxFuture};
use kube::Client;
use neap_idle::{
    resolver::{
        Resolver,
        drain::{DrainState, DrainTimeouts, drain},
        hold::{WakeFailed, WakeRequester},
        http::{HostRouting, ListenPort},
        internal_api::InternalApi,
        listeners,
        route_watcher::RouteWatcher,
        routes::{RouteDefaults, RouteTableReader},
    },
    wake::{self, WakeOutcome},
};
use neap_kit::{
    clock::Clock, context::Context, key::Key, lease::Leadership, manager::Manager, watch::Watches,
};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    addresses::{self, INTERNAL, SHARED},
    memory::Memory,
};

/// All resolvers, one on each node. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ResolverSet {
    client: Client,
    clock: Clock,
    memory: Memory,
    operator: wake::WakeHandle,
    addresses: BTreeSet<IpAddr>,
    running: Arc<Mutex<Vec<RunningResolver>>>,
}

/// A resolver and its address.
#[derive(Debug)]
struct RunningResolver {
    address: IpAddr,
    internal_api: Arc<InternalApi>,
    listeners: CancellationToken,
    _tasks: JoinSet<()>,
}

impl ResolverSet {
    pub(crate) fn open(
        client: &Client,
        clock: Clock,
        memory: &Memory,
        count: usize,
        operator: wake::WakeHandle,
    ) -> Result<Self> {
        let set = Self {
            client: client.clone(),
            clock,
            memory: memory.clone(),
            operator,
            addresses: (0..count).map(addresses::resolver).collect(),
            running: Arc::default(),
        };
        for number in 0..count {
            let start = set.start(addresses::resolver(number))?;
            set.running.lock().push(start);
        }
        Ok(set)
    }

    /// The internal API of the resolver at this address.
    pub(crate) fn internal_api(&self, address: IpAddr) -> Option<Arc<InternalApi>> {
        let running = self.running.lock();
        let mut here = running.iter().filter(|start| start.address == address);
        here.next().map(|start| start.internal_api.clone())
    }

    /// The internal addresses of all resolvers.
    pub(crate) fn internal_addresses(&self) -> Vec<SocketAddr> {
        let addresses = self.addresses.iter();
        addresses.map(|it| SocketAddr::new(*it, INTERNAL)).collect()
    }

    /// The number of requests that a resolver holds.
    pub(crate) fn held(&self, number: usize) -> usize {
        let queued = self.running.lock()[number]
            .internal_api
            .resolver
            .held_requests
            .queue_sizes();
        queued.values().map(|queued| queued.requests).sum()
    }

    /// Terminates a resolver as its process does, and starts another in its place. Returns the
    /// number of connections that were cut off.
    pub(crate) async fn terminate(&self, number: usize, timeouts: DrainTimeouts) -> Result<usize> {
        let (resolver, listeners, address) = {
            let start = &self.running.lock()[number];
            (
                start.internal_api.resolver.clone(),
                start.listeners.clone(),
                start.address,
            )
        };
        let left = drain(&resolver, &DrainState::default(), &listeners, timeouts).await;
        let start = self.start(address)?;
        let old = std::mem::replace(&mut self.running.lock()[number], start);
        drop(old);
        Ok(left)
    }

    fn start(&self, address: IpAddr) -> Result<RunningResolver> {
        let (client, clock) = (&self.client, self.clock);
        let operator = self.operator.clone();
        let mut tasks = JoinSet::new();
        let (watches, watching) = Watches::new(clock);
        let context = Context {
            client: client.clone(),
            watches: watches.clone(),
            leadership: Leadership::without_election(clock),
            clock,
        };
        let (publish, route_table) = RouteTableReader::new();
        let follow = RouteWatcher::new(client, &watches, &[], RouteDefaults::default(), publish)?;
        let process = watches.process().clone();
        let waker = Arc::new(DirectWakeRequester(operator));
        let naming = HostRouting::default();
        let resolver = Resolver::new(clock, route_table, waker, naming, process.telemetry());
        let net = self.memory.at(address);
        let mut resolver = resolver.with_network(net.clone());
        resolver.host = Some(address);
        resolver
            .accepted
            .set_resolver_addresses(self.addresses.clone());
        let (stop, listeners) = (CancellationToken::new(), CancellationToken::new());
        tasks.spawn(watching.run(stop.clone()));
        tasks.spawn(follow.run(stop.clone()));
        tasks.spawn(resolver.held_requests.clone().run(stop));
        tasks.spawn(listeners::run(resolver.clone(), listeners.clone()));
        let everyone = net.listen(None, SHARED)?;
        let everyone = listeners::accept(
            resolver.clone(),
            everyone,
            ListenPort::Shared,
            listeners.clone(),
        );
        tasks.spawn(everyone);
        let internal_api = InternalApi {
            resolver,
            services: Vec::new(),
            health: Manager::new(&context).health(),
            process,
        };
        Ok(RunningResolver {
            address,
            internal_api: Arc::new(internal_api),
            listeners,
            _tasks: tasks,
        })
    }
}

impl fmt::Debug for ResolverSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Row")
            .field(&self.running.lock().len())
            .finish()
    }
}

/// Requests wakes from the operator, as a resolver does.
struct DirectWakeRequester(wake::WakeHandle);

impl WakeRequester for DirectWakeRequester {
    fn wake(&self, service: Key, _: usize) -> BoxFuture<'static, Result<(), WakeFailed>> {
        let asked = self.0.wake(service);
        async move {
            let pending = asked.map_err(|full| WakeFailed(full.to_string()))?;
            match pending.outcome().await {
                WakeOutcome::Woken { .. } | WakeOutcome::Awake { .. } => Ok(()),
                WakeOutcome::Unknown => Err(WakeFailed("the service is unknown".to_owned())),
                WakeOutcome::Failed(why) => Err(WakeFailed(why)),
            }
        }
        .boxed()
    }
}
