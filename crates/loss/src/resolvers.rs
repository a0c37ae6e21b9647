//! Resolvers as their processes run them, but for their addresses: there are several on this
//! machine, and each has its own.

use std::{collections::BTreeSet, fmt, net::IpAddr, sync::Arc};

use anyhow::Result;
use futures::{FutureExt, future::BoxFuture};
use kube::Client;
use neap_idle::{
    resolver::{
        Resolver,
        drain::{Ending, Patience, drain},
        follow::Follow,
        hold::{NotWoken, Waker},
        http::Naming,
        listen,
        routes::{Defaults, Tables},
    },
    wake::{self, Cause, Outcome, Whom},
};
use neap_kit::{clock::Clock, key::Key, telemetry::Telemetry, watch::Watches};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::street::Street;

/// All resolvers, one on each node. Cheap to copy.
#[derive(Clone)]
pub(crate) struct Row {
    client: Client,
    clock: Clock,
    operator: wake::Waker,
    addresses: BTreeSet<IpAddr>,
    stands: Arc<Mutex<Vec<Stand>>>,
}

/// One resolver, and where it is.
#[derive(Debug)]
struct Stand {
    address: IpAddr,
    resolver: Resolver,
    listeners: CancellationToken,
    _tasks: JoinSet<()>,
}

impl Row {
    pub(crate) fn open(
        client: &Client,
        clock: Clock,
        street: Street,
        count: usize,
        operator: wake::Waker,
    ) -> Result<Self> {
        let row = Self {
            client: client.clone(),
            clock,
            operator,
            addresses: (0..count).map(|number| street.resolver(number)).collect(),
            stands: Arc::default(),
        };
        for number in 0..count {
            let stand = row.stand(street.resolver(number))?;
            row.stands.lock().push(stand);
        }
        Ok(row)
    }

    /// Which of them has this address.
    pub(crate) fn number(&self, address: IpAddr) -> Option<usize> {
        let stands = self.stands.lock();
        stands.iter().position(|stand| stand.address == address)
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Resolver> {
        let stands = self.stands.lock();
        stands.iter().map(|stand| stand.resolver.clone()).collect()
    }

    /// How many one of them holds.
    pub(crate) fn held(&self, number: usize) -> usize {
        let queued = self.stands.lock()[number].resolver.holds.all_queued();
        queued.values().map(|queued| queued.requests).sum()
    }

    /// Ends one as its process does when it is told to, and starts another in its place: how many
    /// connections were cut off.
    pub(crate) async fn end(&self, number: usize, patience: Patience) -> Result<usize> {
        let (resolver, listeners, address) = {
            let stand = &self.stands.lock()[number];
            (
                stand.resolver.clone(),
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
        let (publish, tables) = Tables::new();
        let follow = Follow::new(client, &watches, &[], Defaults::default(), publish)?;
        let telemetry = Telemetry::default();
        let waker = Arc::new(Operator(operator));
        let mut resolver = Resolver::new(clock, tables, waker, Naming::default(), &telemetry);
        resolver.host = Some(address);
        resolver.taken.resolvers_are(self.addresses.clone());
        let (stop, listeners) = (CancellationToken::new(), CancellationToken::new());
        tasks.spawn(watching.run(stop.clone()));
        tasks.spawn(follow.run(stop.clone()));
        tasks.spawn(resolver.holds.clone().run(stop));
        tasks.spawn(listen::follow(resolver.clone(), listeners.clone()));
        Ok(Stand {
            address,
            resolver,
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
        let asked = self.0.wake(Whom::Service(service), Cause::Request);
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
