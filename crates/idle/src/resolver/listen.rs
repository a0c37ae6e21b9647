//! A listener for every port of the table.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use neap_kit::key::Key;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;

use super::{Resolver, events::Forgot, http, http::Entrance, lanes::Lanes, routes::Table, tcp};
use crate::api::Protocol;

/// So many connections wait in the system until they are accepted.
const BACKLOG: u32 = 4096;
/// What could not be done is tried again after this time.
const AGAIN: Duration = Duration::from_secs(1);

/// Listens on every port of the table until told to stop. A port that is no longer there takes no
/// more connections; those it has taken go on.
pub async fn follow(lanes: Lanes, stop: CancellationToken) {
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
            match bind(resolver.host, *port) {
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
    let pods: std::collections::HashSet<SocketAddr> = pods
        .iter()
        .flat_map(|pods| pods.values().flatten().copied())
        .collect();
    resolver.client.retain(|pod| pods.contains(pod));
    let known = |key: &Key| table.service(key).is_some();
    resolver.activity.retain(known);
    resolver.meter.emit(&Forgot(&known));
}

/// Listens on a port at `host`, or else for both families, or for IPv4 where there is no other.
pub fn bind(host: Option<IpAddr>, port: u16) -> io::Result<TcpListener> {
    match host {
        Some(host @ IpAddr::V4(_)) => return open(TcpSocket::new_v4()?, host, port),
        Some(host @ IpAddr::V6(_)) => return open(TcpSocket::new_v6()?, host, port),
        None => {}
    }
    let both =
        TcpSocket::new_v6().and_then(|socket| open(socket, Ipv6Addr::UNSPECIFIED.into(), port));
    match both {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            open(TcpSocket::new_v4()?, Ipv4Addr::UNSPECIFIED.into(), port)
        }
        both => both,
    }
}

fn open(socket: TcpSocket, address: IpAddr, port: u16) -> io::Result<TcpListener> {
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::new(address, port))?;
    socket.listen(BACKLOG)
}

/// Takes connections until told to stop. Those that were taken go on.
pub async fn accept(
    lanes: Lanes,
    listener: TcpListener,
    entrance: Entrance,
    stop: CancellationToken,
) {
    let resolver = &lanes.resolver;
    let at = listener.local_addr().map_or(0, |address| address.port());
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((client, source)) => {
                resolver.taken.note(source, at);
                // Who cannot be told to be quick is slower, and that is all.
                let _ = client.set_nodelay(true);
                let route = match entrance {
                    Entrance::Port(port) => resolver.tables.now().route(port).cloned(),
                    Entrance::Shared => None,
                };
                let http = route
                    .as_ref()
                    .is_none_or(|route| route.port.protocol == Protocol::Http);
                let Ok(client) = Handed::over(client) else {
                    continue;
                };
                match route {
                    Some(route) if !http => lanes.carry(|resolver| async move {
                        if let Ok(client) = client.taken() {
                            tcp::serve(resolver, route, client, source).await;
                        }
                    }),
                    None if entrance != Entrance::Shared => {}
                    _ => lanes.carry(|resolver| async move {
                        if let Ok(client) = client.taken() {
                            http::serve(resolver, entrance, client, source).await;
                        }
                    }),
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

/// A connection on its way to the thread that carries it.
struct Handed(std::net::TcpStream);

impl Handed {
    fn over(client: tokio::net::TcpStream) -> io::Result<Self> {
        client.into_std().map(Self)
    }

    fn taken(self) -> io::Result<tokio::net::TcpStream> {
        tokio::net::TcpStream::from_std(self.0)
    }
}
