//! Finds out whom the data plane reaches, by way of the resolvers.
//!
//! Every resolver opens connections to the address of a Service and sends no byte. Afterwards all of
//! them are asked which of those connections they took: the others ended at pods. So the answer comes
//! from where the traffic comes from, and from those who would get it.

use std::{
    collections::BTreeSet,
    fmt,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use futures::future::{BoxFuture, join_all, try_join_all};
use neap_kit::clock::Clock;

use super::resolvers::{Places, Resolvers, Silent};
use crate::{
    api::{
        Towards,
        wire::{Probe, Took},
    },
    service::prove::{Prover, Search},
};

/// So many connections in a row, from each resolver to each port.
const IN_A_ROW: u32 = 8;
/// A resolver that is slow to accept says only after this time that it took a connection.
const SLOW: Duration = Duration::from_millis(400);
/// One who does not answer within this time proves nothing.
const LIMIT: Duration = Duration::from_secs(8);

/// Proves by connections that resolvers open.
pub struct Connections {
    resolvers: Resolvers,
    /// All that run: one that is about to end may still be reached.
    places: Places,
    port: u16,
    clock: Clock,
}

impl Connections {
    /// Asks resolvers at their internal `port`, and those at `places` what they took.
    pub fn new(resolvers: Resolvers, places: Places, port: u16, clock: Clock) -> Self {
        Self {
            resolvers,
            places,
            port,
            clock,
        }
    }

    async fn found(&self, search: &Search) -> Result<bool, Silent> {
        let tries = self.tries(search).await?;
        if tries.is_empty() {
            return Ok(false);
        }
        let sources: Vec<_> = tries.iter().flat_map(|one| one.sources.clone()).collect();
        let mut taken = self.taken(search, &sources).await?;
        if search.question.towards == Towards::Pods {
            // Nobody says of pods that they took something, so whoever may have is asked twice.
            self.clock.sleep(SLOW).await;
            taken.extend(self.taken(search, &sources).await?);
        }
        let shown =
            |one: &Tried| shows(search.question.towards, search.question.beside, one, &taken);
        Ok(tries.iter().all(shown))
    }

    async fn tries(&self, search: &Search) -> Result<Vec<Tried>, Silent> {
        let mut all = Vec::new();
        for resolver in &search.resolvers {
            // Each family is asked by those who have it.
            let same = |address: &&IpAddr| address.is_ipv4() == resolver.address.is_ipv4();
            for address in search.addresses.iter().filter(same) {
                for port in search.ports.iter().filter_map(|it| u16::try_from(*it).ok()) {
                    let place = SocketAddr::new(resolver.address, self.port);
                    all.push(self.tried(place, *address, port));
                }
            }
        }
        try_join_all(all).await
    }

    async fn tried(&self, place: SocketAddr, address: IpAddr, port: u16) -> Result<Tried, Silent> {
        let probe = Probe {
            address,
            port,
            count: IN_A_ROW,
        };
        let probed = self.resolvers.probe(place, &probe).await?;
        Ok(Tried {
            sources: probed.sources,
            failed: probed.failed > 0,
        })
    }

    /// Those of `sources` that any resolver took. One that does not say makes it unknown.
    async fn taken(
        &self,
        search: &Search,
        sources: &[SocketAddr],
    ) -> Result<BTreeSet<SocketAddr>, Silent> {
        let ready = search.resolvers.iter();
        let ready = ready.map(|one| SocketAddr::new(one.address, self.port));
        let places: BTreeSet<_> = ready.chain((self.places)()).collect();
        let took = Took {
            sources: sources.to_vec(),
        };
        let asked = places
            .iter()
            .map(|place| self.resolvers.taken(*place, &took));
        let mut taken = BTreeSet::new();
        for answer in join_all(asked).await {
            taken.extend(answer?.taken);
        }
        Ok(taken)
    }
}

/// What came of the connections from one resolver to one port.
#[derive(Debug)]
struct Tried {
    sources: Vec<SocketAddr>,
    /// Some of them nobody took.
    failed: bool,
}

/// Whether these connections show it. While pods and resolvers answer side by side it is enough that
/// some of them end where they should; afterwards all must.
fn shows(towards: Towards, beside: bool, tried: &Tried, taken: &BTreeSet<SocketAddr>) -> bool {
    let by_resolver = |source: &&SocketAddr| taken.contains(source);
    let resolvers = tried.sources.iter().filter(by_resolver).count();
    let pods = tried.sources.len() - resolvers;
    let (right, wrong) = match towards {
        Towards::Resolvers => (resolvers, pods),
        Towards::Pods => (pods, resolvers),
    };
    !tried.failed && right > 0 && (beside || wrong == 0)
}

impl Prover for Connections {
    fn prove<'a>(&'a self, search: &'a Search) -> BoxFuture<'a, bool> {
        Box::pin(async {
            match self.clock.within(LIMIT, self.found(search)).await {
                Some(Ok(found)) => found,
                Some(Err(silent)) => {
                    tracing::info!(%silent, "whom the data plane reaches could not be found out");
                    false
                }
                None => false,
            }
        })
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("resolvers", &self.resolvers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_show_whom_they_reach() {
        let source = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let tried = |ports: &[u16], failed| Tried {
            sources: ports.iter().map(|port| source(*port)).collect(),
            failed,
        };
        use Towards::{Pods, Resolvers};
        for (towards, beside, ports, failed, taken, shown) in [
            // Side by side one of each is enough for either.
            (Resolvers, true, &[1, 2][..], false, &[1][..], true),
            (Pods, true, &[1, 2], false, &[1], true),
            (Resolvers, true, &[1, 2], false, &[], false),
            (Pods, true, &[1, 2], false, &[1, 2], false),
            // Alone, each must end where it should.
            (Pods, false, &[1, 2], false, &[1], false),
            (Pods, false, &[1, 2], false, &[], true),
            (Resolvers, false, &[1, 2], false, &[1, 2], true),
            // What nobody took shows nothing, and nothing shows nothing.
            (Pods, false, &[1, 2], true, &[], false),
            (Resolvers, true, &[1, 2], true, &[1, 2], false),
            (Pods, false, &[], false, &[], false),
        ] {
            let taken: BTreeSet<_> = taken.iter().map(|port| source(*port)).collect();
            let tried = tried(ports, failed);
            let found = shows(towards, beside, &tried, &taken);
            assert_eq!(found, shown, "{towards:?} {beside} {tried:?} {taken:?}");
        }
    }
}
