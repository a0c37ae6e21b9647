//! Shows where the data plane leads: opens connections to the address of a Service and closes them
//! without a byte. Which of them a resolver took is for the resolvers to say, by their sources.

use std::{net::SocketAddr, time::Duration};

use futures::future::join_all;

use super::{Resolver, taken::PROOF_LASTS};

/// So many at most, whatever is asked for.
const AT_MOST: usize = 16;
/// So long they stay open: whoever took them may accept them a moment later, and a data plane that
/// has nobody to pass them on to closes them.
const OPEN: Duration = Duration::from_millis(250);

/// What came of some connections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tried {
    /// Where those came from that somebody took.
    pub sources: Vec<SocketAddr>,
    /// So many nobody took.
    pub failed: usize,
}

/// Opens `count` connections to `address`.
pub async fn prove(resolver: &Resolver, address: SocketAddr, count: usize) -> Tried {
    let _proving = resolver.taken.proving();
    let tries = (0..count.min(AT_MOST)).map(|_| source(resolver, address));
    let mut tried = Tried::default();
    for source in join_all(tries).await {
        match source {
            Some(source) => tried.sources.push(source),
            None => tried.failed += 1,
        }
    }
    // Whoever took them may be this very resolver, a moment later.
    resolver.clock.sleep(OPEN.min(PROOF_LASTS)).await;
    tried
}

/// Where a connection came from that was taken and not closed at once.
async fn source(resolver: &Resolver, address: SocketAddr) -> Option<SocketAddr> {
    let clock = resolver.clock;
    // From the address that this resolver has among several, so that others know it as one.
    let connect = resolver.net.connect_from(resolver.host, address);
    let connected = clock.within(PROOF_LASTS / 2, connect).await;
    let stream = connected?.ok()?;
    let source = stream.local_addr().ok()?;
    let mut byte = [0];
    match clock.within(OPEN, stream.peek(&mut byte)).await {
        // Nobody is there to whom it could be passed on.
        Some(Ok(0) | Err(_)) => None,
        _ => Some(source),
    }
}
