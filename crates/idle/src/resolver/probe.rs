//! Probes where the data plane routes a Service: opens connections to its address and closes them
//! without sending a byte. The resolvers then report which of them they accepted, by source address.

use std::{net::SocketAddr, time::Duration};

use futures::future::join_all;

use super::{Resolver, accepted_connections::PROBE_LIFETIME};

/// Upper limit on the connections of one probe, whatever the operator requests.
const MAX_PROBE_CONNECTIONS: usize = 16;
/// How long probe connections stay open: the receiver may accept them a moment later, and a data plane
/// without a backend closes them within this time.
const PROBE_OPEN_TIME: Duration = Duration::from_millis(250);

/// The outcome of a probe.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbeResult {
    /// The source addresses of the connections that were accepted.
    pub sources: Vec<SocketAddr>,
    /// How many connections were not accepted.
    pub failed: usize,
}

/// Opens `count` connections to `address`.
pub async fn open_connections(
    resolver: &Resolver,
    address: SocketAddr,
    count: usize,
) -> ProbeResult {
    let _probe = resolver.accepted.start_probe();
    let attempts = (0..count.min(MAX_PROBE_CONNECTIONS)).map(|_| source(resolver, address));
    let mut result = ProbeResult::default();
    for source in join_all(attempts).await {
        match source {
            Some(source) => result.sources.push(source),
            None => result.failed += 1,
        }
    }
    // This resolver may be the receiver itself, and accept them a moment later.
    resolver
        .clock
        .sleep(PROBE_OPEN_TIME.min(PROBE_LIFETIME))
        .await;
    result
}

/// The source address of a connection that was accepted and not closed at once.
async fn source(resolver: &Resolver, address: SocketAddr) -> Option<SocketAddr> {
    let clock = resolver.clock;
    // From this resolver's own address among several, so that other resolvers recognise it.
    let connect = resolver.net.connect_from(resolver.host, address);
    let connected = clock.within(PROBE_LIFETIME / 2, connect).await;
    let stream = connected?.ok()?;
    let source = stream.local_addr().ok()?;
    let mut byte = [0];
    match clock.within(PROBE_OPEN_TIME, stream.peek(&mut byte)).await {
        // The data plane has no backend for it.
        Some(Ok(0) | Err(_)) => None,
        _ => Some(source),
    }
}
