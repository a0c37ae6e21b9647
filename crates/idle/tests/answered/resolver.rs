//! The resolver, whose connections are places in its line.

use std::sync::{Arc, atomic::Ordering};

use futures::{FutureExt, future::BoxFuture};
use neap_idle::{
    resolver::{
        Resolver,
        follow::Follow,
        hold::{Holding, NotWoken, Waker},
        http::Naming,
        routes::{Defaults, Tables},
    },
    wake::Outcome,
};
use neap_kit::{key::Key, manager::Service, site::Site, watch::Ended};
use tokio::{sync::mpsc, task::JoinSet};

use crate::town::{Taken, Town};

pub(crate) fn services(site: &Site, town: &Arc<Town>) -> Result<Vec<Service>, Ended> {
    let (publish, tables) = Tables::new();
    let follow = Follow::new(
        &site.client,
        &site.watches,
        &[],
        Defaults::default(),
        publish,
    )?;
    let waker = Arc::new(Asks(town.clone()));
    let telemetry = site.watches.process().telemetry().clone();
    let resolver = Resolver::new(site.clock, tables, waker, Naming::default(), &telemetry);
    let (door, taken) = mpsc::channel(64);
    *town.resolver.lock() = Some(door);
    town.lives.fetch_add(1, Ordering::SeqCst);
    let holds = resolver.holds.clone();
    let town = town.clone();
    Ok(vec![
        Service::new("follow", |stop| follow.run(stop)),
        Service::new("holds", |stop| holds.run(stop)),
        Service::new("door", |_| answer(resolver, taken, town)),
    ])
}

async fn answer(resolver: Resolver, mut taken: mpsc::Receiver<Taken>, town: Arc<Town>) {
    let mut all = JoinSet::new();
    loop {
        tokio::select! {
            Some(taken) = taken.recv() => {
                all.spawn(carry(resolver.clone(), taken, town.clone()));
            }
            Some(_) = all.join_next() => {}
        }
    }
}

/// What `tcp` and `http` do, without a socket.
async fn carry(mut resolver: Resolver, taken: Taken, town: Arc<Town>) {
    let route = loop {
        let table = resolver.tables.now();
        if let Some(route) = table.routes().values().next() {
            break route.clone();
        }
        // It listens on no port yet, so the connection waits in the system.
        resolver.tables.next().await;
    };
    let mut holding = Holding::new(&resolver.holds, route, 0);
    loop {
        let pod = match holding.place().await {
            Ok(pod) => pod,
            Err(refused) => {
                let _ = taken.reply.send(Err(refused.to_string()));
                return;
            }
        };
        if !town.pods.lock().contains(&pod) {
            holding.refused();
            continue;
        }
        holding.connected();
        town.saw(taken.id);
        holding.answered();
        let _ = taken.reply.send(Ok(()));
        return;
    }
}

struct Asks(Arc<Town>);

impl Waker for Asks {
    fn wake(&self, service: Key, _: usize) -> BoxFuture<'static, Result<(), NotWoken>> {
        let town = self.0.clone();
        async move {
            let away = || NotWoken("the operator is away".to_owned());
            let operator = town.operator.lock().clone().ok_or_else(away)?;
            let asked = operator.wake(service);
            let asked = asked.map_err(|_| away())?;
            match asked.outcome().await {
                Outcome::Woken { .. } => {
                    town.woken.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                }
                Outcome::Awake { .. } => Ok(()),
                other => Err(NotWoken(format!("{other:?}"))),
            }
        }
        .boxed()
    }
}
