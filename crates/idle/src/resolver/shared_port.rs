//! The port that all services share: the service follows from the server name of TLS or from the head of
//! the request.

use std::{net::SocketAddr, sync::Arc};

use super::{
    Resolver,
    events::RequestRejected,
    http::{self, ListenPort},
    net::Stream,
    routes::{Route, RouteTable},
    tcp,
    tls::{self, FirstByte},
};
use crate::api::Protocol;

/// Serves one connection.
pub(super) async fn serve(resolver: Resolver, client: Stream, source: SocketAddr) {
    let patience = resolver.client_timeout;
    match tls::peek_first_byte(&client, patience, resolver.clock).await {
        FirstByte::Closed => return,
        FirstByte::TimedOut => return resolver.record_client_timeout(None, Protocol::Http),
        FirstByte::Other => return http::serve(resolver, ListenPort::Shared, client, source).await,
        FirstByte::TlsHandshake => {}
    }
    let name = tls::peek_server_name(&client, patience, resolver.clock).await;
    let table = resolver.route_table.current();
    let meant = name
        .as_deref()
        .and_then(|name| route(&resolver, &table, name));
    match meant {
        Some(route) => tcp::serve(resolver, route, client, source).await,
        None => resolver.meter.emit(&RequestRejected {
            service: None,
            protocol: Protocol::Tls,
            reason: http::UNKNOWN,
            why: "no service has the TLS server name".to_owned(),
        }),
    }
}

fn route(resolver: &Resolver, table: &RouteTable, name: &str) -> Option<Arc<Route>> {
    let service = table.service(&resolver.host_routing.parse_host(name)?.0)?;
    let route = Route {
        port: service.secure_port()?.clone(),
        service: service.clone(),
    };
    Some(Arc::new(route))
}
