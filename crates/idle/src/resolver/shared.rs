//! The port that all services share: a client says whom it means, in its first TLS message or in the
//! head of its request.

use std::{net::SocketAddr, sync::Arc};

use super::{
    Resolver,
    events::TurnedAway,
    http::{self, Entrance},
    net::Stream,
    routes::{Route, Table},
    tcp,
    tls::{self, First},
};
use crate::api::Protocol;

/// Carries one connection from beginning to end.
pub(super) async fn serve(resolver: Resolver, client: Stream, source: SocketAddr) {
    let patience = resolver.patience;
    match tls::first(&client, patience, resolver.clock).await {
        First::Closed => return,
        First::Late => return resolver.too_slow(None, Protocol::Http),
        First::Other => return http::serve(resolver, Entrance::Shared, client, source).await,
        First::Tls => {}
    }
    let name = tls::name(&client, patience, resolver.clock).await;
    let table = resolver.tables.now();
    let meant = name
        .as_deref()
        .and_then(|name| route(&resolver, &table, name));
    match meant {
        Some(route) => tcp::serve(resolver, route, client, source).await,
        None => resolver.meter.emit(&TurnedAway {
            service: None,
            protocol: Protocol::Tls,
            reason: http::UNKNOWN,
            why: "nobody is known by the name in its first message".to_owned(),
        }),
    }
}

fn route(resolver: &Resolver, table: &Table, name: &str) -> Option<Arc<Route>> {
    let service = table.service(&resolver.naming.read(name)?.0)?;
    let route = Route {
        port: service.secure_port()?.clone(),
        service: service.clone(),
    };
    Some(Arc::new(route))
}
