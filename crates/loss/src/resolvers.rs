//! Resolvers as their processes run them, but for the network that they are on.

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
        drain::{Ending, Patience, drain},
        follow::Follow,
        hold::{NotWoken, Waker},
        http::{Entrance, Naming},
        inside::Inside,
        listen,
        routes::{Defaults, Tables},
    },
    wake::{self, Outcome},
};
use neap_kit::{
    clock::Clock, key::Key, lease::Leadership, manager::Manager, site::Site, watch::Watches,
};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    memory::Memory,
    street::{self, INTERNAL, SHARED},
};

/// All resolvers, one on each node. Cheap to copy.
#[derive(Clone)]
pub(crate) struct Row {
    client: Client,
    clock: Clock,
    memory: Memory,
    operator: wake::Waker,
    addresses: BTreeSet<IpAddr>,
    stands: Arc<Mutex<Vec<Stand>>>,
}

/// One resolver, and where it is.
#[derive(Debug)]
struct Stand {
    address: IpAddr,
    inside: Arc<Inside>,
    listeners: CancellationToken,
    _tasks: JoinSet<()>,
}

impl Row {
    pub(crate) fn open(
        client: &Client,
        clock: Clock,
        memory: &Memory,
        count: usize,
        operator: wake::Waker,
    ) -> Result<Self> {
        let row = Self {
            client: client.clone(),
            clock,
            memory: memory.clone(),
            operator,
            addresses: (0..count).map(street::resolver).collect(),
            stands: Arc::default(),
        };
        for number in 0..count {
            let stand = row.stand(street::resolver(number))?;
            row.stands.lock().push(stand);
        }
        Ok(row)
    }

    /// The one at this address, as its internal port sees it.
    pub(crate) fn inside(&self, address: IpAddr) -> Option<Arc<Inside>> {
        let stands = self.stands.lock();
        let mut here = stands.iter().filter(|stand| stand.address == address);
        here.next().map(|stand| stand.inside.clone())
    }

    /// Where all of them are asked.
    pub(crate) fn places(&self) -> Vec<SocketAddr> {
        let addresses = self.addresses.iter();
        addresses.map(|it| SocketAddr::new(*it, INTERNAL)).collect()
    }

    /// How many one of them holds.
    pub(crate) fn held(&self, number: usize) -> usize {
        let queued = self.stands.lock()[number]
            .inside
            .resolver
            .holds
            .all_queued();
        queued.values().map(|queued| queued.requests).sum()
    }

    /// Ends one as its process does when it is told to, and starts another in its place: how many
    /// connections were cut off.
    pub(crate) async fn end(&self, number: usize, patience: Patience) -> Result<usize> {
        let (resolver, listeners, address) = {
            let stand = &self.stands.lock()[number];
            (
                stand.inside.resolver.clone(),
                stand.listeners.clone(),
                stand.address,
            )
        };
        let left = drain(&resolver, &Ending::default(), &listeners, patience).await;
        let stand = self.stand(address)?;
        let old = std::mem::replace(&mut self.stands.lock()[number], stand);
        drop(old);
        Ok(left)
    }

    fn stand(&self, address: IpAddr) -> Result<Stand> {
        let (client, clock) = (&self.client, self.clock);
        let operator = self.operator.clone();
        let mut tasks = JoinSet::new();
        let (watches, watching) = Watches::new(clock);
        let site = Site {
            client: client.clone(),
            watches: watches.clone(),
            leadership: Leadership::alone(clock),
            clock,
        };
        let (publish, tables) = Tables::new();
        let follow = Follow::new(client, &watches, &[], Defaults::default(), publish)?;
        let process = watches.process().clone();
        let waker = Arc::new(Operator(operator));
        let naming = Naming::default();
        let resolver = Resolver::new(clock, tables, waker, naming, process.telemetry());
        let net = self.memory.at(address);
        let mut resolver = resolver.over(net.clone());
        resolver.host = Some(address);
        resolver.taken.resolvers_are(self.addresses.clone());
        let (stop, listeners) = (CancellationToken::new(), CancellationToken::new());
        tasks.spawn(watching.run(stop.clone()));
        tasks.spawn(follow.run(stop.clone()));
        tasks.spawn(resolver.holds.clone().run(stop));
        tasks.spawn(listen::follow(resolver.clone(), listeners.clone()));
        let everyone = net.listen(None, SHARED)?;
        let everyone = listen::accept(
            resolver.clone(),
            everyone,
            Entrance::Shared,
            listeners.clone(),
        );
        tasks.spawn(everyone);
        let inside = Inside {
            resolver,
            services: Vec::new(),
            health: Manager::new(&site).health(),
            process,
        };
        Ok(Stand {
            address,
            inside: Arc::new(inside),
            listeners,
            _tasks: tasks,
        })
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Row")
            .field(&self.stands.lock().len())
            .finish()
    }
}

/// Asks the operator, as a resolver does.
struct Operator(wake::Waker);

impl Waker for Operator {
    fn wake(&self, service: Key, _: usize) -> BoxFuture<'static, Result<(), NotWoken>> {
        let asked = self.0.wake(service);
        async move {
            let pending = asked.map_err(|full| NotWoken(full.to_string()))?;
            match pending.outcome().await {
                Outcome::Woken { .. } | Outcome::Awake { .. } => Ok(()),
                Outcome::Unknown => Err(NotWoken("nobody knows it".to_owned())),
                Outcome::Failed(why) => Err(NotWoken(why)),
            }
        }
        .boxed()
    }
}
