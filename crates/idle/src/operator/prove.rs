//! Finds out whom the data plane reaches, by asking resolvers.
//!
//! Each resolver opens connections to the address of a Service and closes them without a byte. Then
//! all resolvers are asked which of them they took, by source address and port. What somebody took and
//! no resolver did, a pod took.
//!
//! On the way to itself a connection may be given another source, and some data planes rewrite every
//! source. Whether and to which address is seen in a mirror first: through the Service of the
//! resolvers, behind which nobody but them is, every connection must be known to one of them. Where
//! some are not, the addresses that they seem to come from are disguises, and a connection from a
//! disguise at the port that stands in for this very port of this very Service is taken for one of
//! the proof's.

mod judge;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::future::{BoxFuture, join_all};
use jiff::Timestamp;
use neap_kit::{
    clock::{Clock, Uptime},
    key::Key,
};
use parking_lot::Mutex;

use self::judge::{Disguise, Seen};
use super::resolvers::{Places, Resolvers, Silent};
use crate::{
    api::{
        Breakdown, Towards,
        wire::{Activity, Probe, Probed, Taken, Took},
    },
    service::{
        facts::Resolver,
        prove::{Prover, Search},
    },
};

/// So many connections in a row say the same before it is believed.
const SEVERAL: u32 = 4;
/// So many show whether sources are rewritten; a resolver opens no more at a time.
const MIRRORED: u32 = 16;
/// So many times it is tried again where a connection may go to either of two sides.
const ROUNDS: u32 = 4;
/// So long a look into the mirror holds.
const REMEMBERED: Duration = Duration::from_mins(10);
/// What is asked may be on the way for so long.
const TRANSIT: Duration = Duration::from_millis(50);
/// All of it takes no longer.
const LIMIT: Duration = Duration::from_secs(30);

/// Whom the resolvers are asked through.
pub trait Ask: fmt::Debug + Send + Sync {
    /// Has a resolver open connections.
    fn probe<'a>(
        &'a self,
        resolver: SocketAddr,
        probe: &'a Probe,
    ) -> BoxFuture<'a, Result<Probed, Silent>>;

    /// Which connections a resolver took.
    fn taken<'a>(
        &'a self,
        resolver: SocketAddr,
        asked: &'a Took,
    ) -> BoxFuture<'a, Result<Taken, Silent>>;

    /// What a resolver was asked for.
    fn activity(&self, resolver: SocketAddr) -> BoxFuture<'_, Result<Activity, Silent>>;
}

impl Ask for Resolvers {
    fn probe<'a>(
        &'a self,
        resolver: SocketAddr,
        probe: &'a Probe,
    ) -> BoxFuture<'a, Result<Probed, Silent>> {
        Box::pin(Self::probe(self, resolver, probe))
    }

    fn taken<'a>(
        &'a self,
        resolver: SocketAddr,
        asked: &'a Took,
    ) -> BoxFuture<'a, Result<Taken, Silent>> {
        Box::pin(Self::taken(self, resolver, asked))
    }

    fn activity(&self, resolver: SocketAddr) -> BoxFuture<'_, Result<Activity, Silent>> {
        Box::pin(Self::activity(self, resolver))
    }
}

/// Proves by asking every resolver.
pub struct Proofs {
    ask: Arc<dyn Ask>,
    clock: Clock,
    /// Where resolvers are asked.
    internal: u16,
    /// Where they answer for all services.
    shared: u16,
    /// All that run: one that is about to end may still be reached.
    others: Option<Places>,
    /// What the mirror last showed, to which resolvers.
    mirrored: Mutex<Option<(Vec<IpAddr>, Uptime, Disguise)>>,
}

/// Whoever did not answer keeps everything unproved.
type Maybe<T> = Result<T, Silent>;

impl Proofs {
    /// Asks resolvers at their `internal` port; on the `shared` one they answer for all services.
    pub fn new(ask: Arc<dyn Ask>, clock: Clock, (internal, shared): (u16, u16)) -> Self {
        Self {
            others: None,
            ask,
            clock,
            internal,
            shared,
            mirrored: Mutex::default(),
        }
    }

    /// Also asks those at `places` what they took.
    pub fn asking(mut self, places: Places) -> Self {
        self.others = Some(places);
        self
    }

    async fn found(&self, search: &Search) -> Maybe<bool> {
        let pods = pods(&search.resolvers);
        let disguise = self.mirror(search, &pods).await?;
        let towards = search.question.towards;
        if towards == Towards::Resolvers && !self.all_listen(search, &pods).await? {
            return Ok(false);
        }
        let mut from: Vec<BoxFuture<'_, Maybe<bool>>> = Vec::new();
        for pod in &pods {
            from.push(Box::pin(self.from(*pod, search, &pods, &disguise)));
        }
        // Where sources are rewritten one after the other, so that nobody counts another's.
        let holds = if disguise == Disguise::None {
            all(join_all(from).await)?
        } else {
            let mut holds = true;
            for from in from {
                holds = holds && from.await?;
            }
            holds
        };
        Ok(holds && !pods.is_empty() && !search.addresses.is_empty())
    }

    /// Whether every resolver takes connections on the ports that it is about to stand in on: each is
    /// tried by the next one, with no data plane between.
    async fn all_listen(&self, search: &Search, pods: &[IpAddr]) -> Maybe<bool> {
        let mut tries: Vec<BoxFuture<'_, Maybe<bool>>> = Vec::new();
        for (from, to) in pods.iter().zip(pods.iter().cycle().skip(1)) {
            for port in &search.resolver_ports {
                tries.push(Box::pin(self.listens(*from, *to, *port, pods)));
            }
        }
        all(join_all(tries).await)
    }

    async fn listens(&self, from: IpAddr, to: IpAddr, port: i32, pods: &[IpAddr]) -> Maybe<bool> {
        let Some(port) = number(port) else {
            return Ok(false);
        };
        let seen = self.seen(from, (to, port), port, 1, pods, &Disguise::None);
        seen.await.map(|seen| seen.by_resolvers == 1)
    }

    /// What one resolver finds, at every address and port.
    async fn from(
        &self,
        pod: IpAddr,
        search: &Search,
        pods: &[IpAddr],
        disguise: &Disguise,
    ) -> Maybe<bool> {
        for address in &search.addresses {
            let mut ports = vec![Seen::default(); search.ports.len()];
            let mut holds = false;
            for _ in 0..ROUNDS {
                let mut looks: Vec<BoxFuture<'_, Maybe<Seen>>> = Vec::new();
                for (port, other) in search.ports.iter().zip(&search.resolver_ports) {
                    if let (Some(port), Some(other)) = (number(*port), number(*other)) {
                        let to = (*address, port);
                        looks.push(Box::pin(self.seen(pod, to, other, SEVERAL, pods, disguise)));
                    }
                }
                for (port, seen) in ports.iter_mut().zip(join_all(looks).await) {
                    port.add(seen?);
                }
                holds = judge::holds(&search.question, &ports, disguise);
                if holds || judge::is_final(&search.question) {
                    break;
                }
            }
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What becomes of some connections from a resolver to `to`.
    async fn seen(
        &self,
        from: IpAddr,
        to: (IpAddr, u16),
        resolver_port: u16,
        count: u32,
        pods: &[IpAddr],
        disguise: &Disguise,
    ) -> Maybe<Seen> {
        let begun = self.clock.uptime();
        let (address, port) = to;
        let probe = Probe {
            address,
            port,
            count,
        };
        let probed = self.ask.probe(self.internal_of(from), &probe).await?;
        let lately = self.clock.uptime().saturating_sub(begun) + TRANSIT;
        let asked = Took {
            sources: probed.sources,
            ports: vec![resolver_port],
            lately: u64::try_from(lately.as_millis()).unwrap_or(u64::MAX),
        };
        let mut taken = BTreeSet::new();
        let mut strangers = Vec::new();
        let ready = pods.iter().map(|pod| self.internal_of(*pod));
        let others = self.others.as_ref().map(|places| places());
        let places: BTreeSet<_> = ready.chain(others.unwrap_or_default()).collect();
        let mut answers = Vec::new();
        for place in places {
            answers.push(self.ask.taken(place, &asked));
        }
        for answer in join_all(answers).await {
            let answer = answer?;
            taken.extend(answer.taken);
            strangers.extend(answer.strangers.iter().map(SocketAddr::ip));
        }
        strangers.retain(|stranger| disguise.may_be(*stranger));
        Ok(Seen {
            opened: asked.sources.len(),
            by_resolvers: taken.len(),
            disguised: strangers.into_iter().collect(),
            failed: probed.failed as usize,
        })
    }

    /// How connections of resolvers seem to come from elsewhere.
    async fn mirror(&self, search: &Search, pods: &[IpAddr]) -> Maybe<Disguise> {
        if search.mirrors.is_empty() {
            return Ok(Disguise::Unknown);
        }
        let now = self.clock.uptime();
        if let Some((seen_by, since, disguise)) = &*self.mirrored.lock()
            && seen_by == pods
            && now.saturating_sub(*since) < REMEMBERED
        {
            return Ok(disguise.clone());
        }
        let mut disguises = BTreeSet::new();
        for mirror in &search.mirrors {
            for pod in pods {
                let seen = self.seen(
                    *pod,
                    (*mirror, self.shared),
                    self.shared,
                    MIRRORED,
                    pods,
                    &Disguise::Unknown,
                );
                let seen = seen.await?;
                if seen.opened > seen.by_resolvers {
                    disguises.extend(seen.disguised);
                }
            }
        }
        let disguise = if disguises.is_empty() {
            Disguise::None
        } else {
            Disguise::Known(disguises)
        };
        *self.mirrored.lock() = Some((pods.to_vec(), now, disguise.clone()));
        Ok(disguise)
    }

    fn internal_of(&self, pod: IpAddr) -> SocketAddr {
        SocketAddr::new(pod, self.internal)
    }
}

impl fmt::Debug for Proofs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proofs")
            .field("mirrored", &self.mirrored.lock())
            .finish_non_exhaustive()
    }
}

impl Prover for Proofs {
    fn prove<'a>(&'a self, search: &'a Search) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let found = self.clock.within(LIMIT, self.found(search)).await;
            match found {
                Some(Ok(holds)) => holds,
                Some(Err(silent)) => {
                    tracing::debug!(%silent, "a proof was not had");
                    false
                }
                None => false,
            }
        })
    }

    fn cold<'a>(
        &'a self,
        service: &'a Key,
        since: Timestamp,
        resolvers: &'a [Resolver],
    ) -> BoxFuture<'a, Option<Breakdown>> {
        Box::pin(async move {
            let pods = pods(resolvers);
            let mut asked = Vec::new();
            for pod in pods {
                asked.push(self.ask.activity(self.internal_of(pod)));
            }
            let answers = join_all(asked).await.into_iter().flatten();
            let name = service.to_string();
            let cold = answers.filter_map(|mut answer| answer.services.remove(&name)?.cold);
            let cold = cold.filter(|cold| cold.served >= since);
            let cold = cold.map(|cold| cold.breakdown);
            cold.max_by_key(|breakdown| breakdown.total())
        })
    }
}

/// Every pod once, whichever of its addresses comes first.
fn pods(resolvers: &[Resolver]) -> Vec<IpAddr> {
    let mut pods = BTreeMap::new();
    for resolver in resolvers {
        pods.entry(&resolver.pod).or_insert(resolver.address);
    }
    pods.into_values().collect()
}

fn all(each: Vec<Maybe<bool>>) -> Maybe<bool> {
    each.into_iter().try_fold(true, |all, one| Ok(all && one?))
}

fn number(port: i32) -> Option<u16> {
    u16::try_from(port).ok()
}
