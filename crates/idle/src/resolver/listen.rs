//! A listener for every port of the table.

use std::{
    collections::{BTreeMap, HashSet},
    net::SocketAddr,
    time::Duration,
};

use neap_kit::key::Key;
use tokio_util::sync::CancellationToken;

use super::{
    Resolver,
    events::Forgot,
    http::{self, Entrance},
    lanes::Lanes,
    net::Listener,
    routes::Table,
    shared, tcp,
};
use crate::api::Protocol;

/// What could not be done is tried again after this time.
const AGAIN: Duration = Duration::from_secs(1);

/// Listens on every port of the table until told to stop. A port that is no longer there takes no
/// more connections; those it has taken go on.
pub async fn follow(lanes: impl Into<Lanes>, stop: CancellationToken) {
    let lanes = lanes.into();
    let resolver = &lanes.resolver;
    let mut tables = resolver.tables.clone();
    let mut open: BTreeMap<u16, CancellationToken> = BTreeMap::new();
    loop {
        let table = tables.now();
        forget(resolver, &table);
        open.retain(|port, listening| {
            let stays = table.route(*port).is_some();
            if !stays {
                listening.cancel();
            }
            stays
        });
        let mut all = true;
        for port in table.routes().keys() {
            if open.contains_key(port) {
                continue;
            }
            match resolver.net.listen(resolver.host, *port) {
                Ok(listener) => {
                    let end = stop.child_token();
                    open.insert(*port, end.clone());
                    let accept = accept(lanes.clone(), listener, Entrance::Port(*port), end);
                    resolver.tasks.spawn(accept);
                }
                Err(error) => {
                    tracing::error!(port, %error, "a port cannot be listened on; it is tried again");
                    all = false;
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            Some(_) = tables.next() => {}
            () = resolver.clock.sleep(AGAIN), if !all => {}
        }
    }
}

/// Forgets what is kept for services and pods that are gone.
fn forget(resolver: &Resolver, table: &Table) {
    let keys = table.services().map(|service| &service.key);
    let pods: Vec<_> = keys.map(|key| table.pods(key)).collect();
    let pods: HashSet<SocketAddr> = pods
        .iter()
        .flat_map(|pods| pods.values().flatten().copied())
        .collect();
    resolver.client.retain(|pod| pods.contains(pod));
    let known = |key: &Key| table.service(key).is_some();
    resolver.activity.retain(known);
    resolver.meter.emit(&Forgot(&known));
}

/// Takes connections until told to stop. Those that were taken go on.
pub async fn accept(
    lanes: impl Into<Lanes>,
    listener: Listener,
    entrance: Entrance,
    stop: CancellationToken,
) {
    let lanes = lanes.into();
    let resolver = &lanes.resolver;
    let at = listener.local_addr().map_or(0, |address| address.port());
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.arrival() => accepted,
        };
        match accepted {
            Ok((client, source)) => {
                resolver.taken.note(source, at);
                let Entrance::Port(port) = entrance else {
                    lanes.carry(client, move |resolver, client| {
                        shared::serve(resolver.clone(), client, source)
                    });
                    continue;
                };
                // One whose service is gone meanwhile is closed.
                let Some(route) = resolver.tables.now().route(port).cloned() else {
                    continue;
                };
                if route.port.protocol == Protocol::Http {
                    lanes.carry(client, move |resolver, client| {
                        http::serve(resolver.clone(), entrance, client, source)
                    });
                } else {
                    lanes.carry(client, move |resolver, client| {
                        tcp::serve(resolver.clone(), route, client, source)
                    });
                }
            }
            // Too many open files, or a client that left: both pass.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                resolver.clock.sleep(Duration::from_millis(50)).await;
            }
        }
    }
}
