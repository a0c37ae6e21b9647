//! Shows where the data plane leads: opens connections to the address of a Service and closes them
//! without a byte. Which of them a resolver took is for the resolvers to say, by their sources.

use std::{net::SocketAddr, time::Duration};

use futures::future::join_all;
use neap_kit::clock::Clock;
use tokio::net::TcpStream;

use super::taken::{PROOF_LASTS, Taken};

/// So many at most, whatever is asked for.
const AT_MOST: usize = 16;

/// What came of some connections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tried {
    /// Where those came from that somebody took.
    pub sources: Vec<SocketAddr>,
    /// So many nobody took.
    pub failed: usize,
}

/// Opens `count` connections to `address`.
pub async fn prove(taken: &Taken, address: SocketAddr, count: usize, clock: Clock) -> Tried {
    let proving = taken.proving();
    let tries = (0..count.min(AT_MOST)).map(|_| source(address, clock));
    let mut tried = Tried::default();
    for source in join_all(tries).await {
        match source {
            Some(source) => tried.sources.push(source),
            None => tried.failed += 1,
        }
    }
    // Whoever took them may be this very resolver, a moment later.
    clock
        .sleep(PROOF_LASTS.min(Duration::from_millis(100)))
        .await;
    drop(proving);
    tried
}

async fn source(address: SocketAddr, clock: Clock) -> Option<SocketAddr> {
    let connected = clock.within(PROOF_LASTS, TcpStream::connect(address)).await;
    connected?.ok()?.local_addr().ok()
}
