//! A listener for every port of the route table.

use std::{
    collections::{BTreeMap, HashSet},
    net::SocketAddr,
    time::Duration,
};

use neap_kit::key::Key;
use tokio_util::sync::CancellationToken;

use super::{
    Resolver,
    events::ServicesRemoved,
    http::{self, ListenPort},
    net::Listener,
    routes::RouteTable,
    shared_port, tcp,
    workers::ConnectionWorkers,
};
use crate::api::Protocol;

/// Delay before a port that could not be bound is tried again.
const BIND_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Listens on every port of the route table until `stop` is cancelled. A port that leaves the table
/// accepts no more connections; those that it has accepted continue.
pub async fn run(workers: impl Into<ConnectionWorkers>, stop: CancellationToken) {
    let workers = workers.into();
    let resolver = &workers.resolver;
    let mut route_table = resolver.route_table.clone();
    let mut open: BTreeMap<u16, CancellationToken> = BTreeMap::new();
    loop {
        let table = route_table.current();
        forget_removed(resolver, &table);
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
                    let accept =
                        accept(workers.clone(), listener, ListenPort::Dedicated(*port), end);
                    resolver.tasks.spawn(accept);
                }
                Err(error) => {
                    tracing::error!(port, %error, "cannot listen on a port; retrying");
                    all = false;
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            Some(_) = route_table.changed() => {}
            () = resolver.clock.sleep(BIND_RETRY_DELAY), if !all => {}
        }
    }
}

/// Drops pooled connections, activity and metrics of services and pods that are gone.
fn forget_removed(resolver: &Resolver, table: &RouteTable) {
    let keys = table.services().map(|service| &service.key);
    let pods: Vec<_> = keys.map(|key| table.pods(key)).collect();
    let pods: HashSet<SocketAddr> = pods
        .iter()
        .flat_map(|pods| pods.values().flatten().copied())
        .collect();
    resolver.pool.retain(|pod| pods.contains(pod));
    let known = |key: &Key| table.service(key).is_some();
    resolver.activity.retain(known);
    resolver.meter.emit(&ServicesRemoved(&known));
}

/// Accepts connections until `stop` is cancelled. Accepted connections continue.
pub async fn accept(
    workers: impl Into<ConnectionWorkers>,
    listener: Listener,
    listen_port: ListenPort,
    stop: CancellationToken,
) {
    let workers = workers.into();
    let resolver = &workers.resolver;
    let at = listener.local_addr().map_or(0, |address| address.port());
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept_unregistered() => accepted,
        };
        match accepted {
            Ok((client, source)) => {
                resolver.accepted.record(source, at);
                let ListenPort::Dedicated(port) = listen_port else {
                    workers.dispatch(client, move |resolver, client| {
                        shared_port::serve(resolver.clone(), client, source)
                    });
                    continue;
                };
                // Without a route the connection is dropped: its service was removed meanwhile.
                let Some(route) = resolver.route_table.current().route(port).cloned() else {
                    continue;
                };
                if route.port.protocol == Protocol::Http {
                    workers.dispatch(client, move |resolver, client| {
                        http::serve(resolver.clone(), listen_port, client, source)
                    });
                } else {
                    workers.dispatch(client, move |resolver, client| {
                        tcp::serve(resolver.clone(), route, client, source)
                    });
                }
            }
            // Too many open files, or a client that left: both are temporary.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                resolver.clock.sleep(Duration::from_millis(50)).await;
            }
        }
    }
}
