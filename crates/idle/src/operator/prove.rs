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
mod ours;
mod reached;
mod sources;
#[cfg(test)]
mod tests;
mod told;

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

use self::{
    judge::{Disguise, Disguises, Seen},
    ours::Ours,
    reached::{Path, Reached},
    sources::Sources,
    told::Told,
};
use super::{
    asking,
    resolvers::{Places, Resolvers, Silent},
};
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
/// So many show whether sources are rewritten, and look for the resolvers among many pods; a
/// resolver opens no more at a time.
const AT_ONCE: u32 = 16;
/// So many times it is tried again where a connection may go to either of two sides.
const ROUNDS: u32 = 4;
/// So long a look into the mirror holds.
const REMEMBERED: Duration = Duration::from_mins(10);
/// What is asked may be on the way for so long. One that takes longer hides a disguised connection,
/// which keeps resolvers from being found.
const TRANSIT: Duration = Duration::from_millis(50);
/// A resolver that is slow to accept says only after this time that it took a connection.
const SLOW: Duration = Duration::from_millis(400);
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
    mirrored: Mutex<Option<(Vec<IpAddr>, Uptime, Disguises)>>,
    /// Who is of this kind.
    ours: Ours,
    /// What earlier attempts found.
    reached: Reached,
    /// What earlier connections came from.
    sources: Sources,
}

/// Some connections, and who is to say what became of them.
struct Look<'a> {
    towards: Towards,
    path: Path,
    count: u32,
    pods: &'a [IpAddr],
    disguise: &'a Disguise,
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
            ours: Ours::default(),
            reached: Reached::default(),
            sources: Sources::default(),
        }
    }

    /// Also asks those at `places` what they took.
    pub fn asking(mut self, places: Places) -> Self {
        self.others = Some(places);
        self
    }

    async fn found(&self, search: &Search) -> Maybe<bool> {
        let pods = pods(&search.resolvers);
        let disguises = self.mirror(search, &pods).await?;
        let towards = search.question.towards;
        if towards == Towards::Resolvers && !self.all_listen(search, &pods).await? {
            return Ok(false);
        }
        let mut from: Vec<BoxFuture<'_, Maybe<bool>>> = Vec::new();
        for (pod, disguise) in &disguises {
            from.push(Box::pin(self.from(*pod, search, &pods, disguise)));
        }
        // Where sources are rewritten one after the other, so that nobody counts another's.
        let holds = if disguises.values().all(|one| *one == Disguise::None) {
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
        let look = Look {
            towards: Towards::Resolvers,
            path: Path {
                from,
                to: (to, port),
                resolver_port: port,
            },
            count: 1,
            pods,
            disguise: &Disguise::None,
        };
        let seen = self.seen(look).await?;
        Ok(seen.by_resolvers == 1)
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
            let Some(paths) = paths(pod, *address, search) else {
                return Ok(false);
            };
            if !self.at(&paths, search, pods, disguise).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is found at the ports of one address.
    async fn at(
        &self,
        paths: &[Path],
        search: &Search,
        pods: &[IpAddr],
        disguise: &Disguise,
    ) -> Maybe<bool> {
        let (question, now) = (&search.question, self.clock.uptime());
        let before = |path| self.reached.at(search, path, now).unwrap_or_default();
        let mut ports: Vec<Seen> = paths.iter().map(before).collect();
        let mut count = SEVERAL;
        for _ in 0..ROUNDS {
            let mut looks: Vec<BoxFuture<'_, Maybe<Seen>>> = Vec::new();
            let mut open: Vec<(&Path, &mut Seen)> = paths.iter().zip(&mut ports).collect();
            open.retain(|(_, port)| !judge::is_enough(question, port, disguise));
            for (path, _) in &open {
                looks.push(Box::pin(self.seen(Look {
                    towards: question.towards,
                    path: **path,
                    count,
                    pods,
                    disguise,
                })));
            }
            for ((path, port), seen) in open.into_iter().zip(join_all(looks).await) {
                port.add(seen?);
                if judge::is_enough(question, port, disguise) {
                    let now = self.clock.uptime();
                    self.reached.note(search, *path, port.clone(), now);
                }
            }
            if judge::holds(question, &ports, disguise) {
                return Ok(true);
            }
            if judge::is_final(question) {
                break;
            }
            // There may be many more of the others, on either way.
            count = AT_ONCE;
        }
        Ok(false)
    }

    /// What becomes of some connections from a resolver.
    async fn seen(&self, look: Look<'_>) -> Maybe<Seen> {
        let before = self.before(&look).await?;
        let begun = self.clock.uptime();
        let (address, port) = look.path.to;
        let probe = Probe {
            address,
            port,
            count: look.count,
        };
        let probed = self
            .ask
            .probe(self.internal_of(look.path.from), &probe)
            .await?;
        let mut told = self.told(&look, &probed.sources, begun).await?;
        // Nobody says of pods that they took something, so whoever may have is asked twice.
        if look.towards == Towards::Pods && told.taken.len() < probed.sources.len() {
            self.clock.sleep(SLOW).await;
            told.join(self.told(&look, &probed.sources, begun).await?);
        }
        let strangers = told.strangers_since(&before).into_iter();
        Ok(Seen {
            opened: probed.sources.len(),
            by_resolvers: told.taken.len(),
            again: self.sources.again(&told.taken, self.clock.uptime()),
            disguised: strangers.filter(|it| look.disguise.may_be(*it)).collect(),
            failed: probed.failed as usize,
        })
    }

    /// The strangers of some time before: none of them is of the proof. Without this nobody could be
    /// asked about a time long enough to miss none, as earlier proofs would be taken for this one.
    async fn before(&self, look: &Look<'_>) -> Maybe<Told> {
        if look.towards == Towards::Resolvers || *look.disguise == Disguise::None {
            return Ok(Told::default());
        }
        self.told(look, &[], self.clock.uptime()).await
    }

    /// What all resolvers say about `sources`, and about strangers since then. Towards pods none may
    /// be missed however long an answer takes, towards resolvers none may be counted that is older.
    async fn told(&self, look: &Look<'_>, sources: &[SocketAddr], since: Uptime) -> Maybe<Told> {
        let spare = match look.towards {
            Towards::Pods => asking::LIMIT,
            Towards::Resolvers => TRANSIT,
        };
        let lately = self.clock.uptime().saturating_sub(since) + spare;
        let asked = Took {
            sources: sources.to_vec(),
            ports: vec![look.path.resolver_port],
            lately: u64::try_from(lately.as_millis()).unwrap_or(u64::MAX),
        };
        let ready = look.pods.iter().map(|pod| self.internal_of(*pod));
        let others = self.others.as_ref().map(|places| places());
        let places: BTreeSet<_> = ready.chain(others.unwrap_or_default()).collect();
        let answers = places.iter().map(|place| self.ask.taken(*place, &asked));
        let answers = join_all(answers).await;
        let mut told = Told::default();
        for (place, answer) in places.iter().zip(answers) {
            told.add(*place, answer?);
        }
        Ok(told)
    }

    /// How connections of each resolver seem to come from elsewhere.
    async fn mirror(&self, search: &Search, pods: &[IpAddr]) -> Maybe<Disguises> {
        let now = self.clock.uptime();
        if let Some((seen_by, since, disguises)) = &*self.mirrored.lock()
            && seen_by == pods
            && now.saturating_sub(*since) < REMEMBERED
        {
            return Ok(disguises.clone());
        }
        let mut disguises = Disguises::new();
        for pod in pods {
            disguises.insert(*pod, self.mirrored_to(*pod, search, pods).await?);
        }
        // What could not be seen may be seen the next time.
        if disguises.values().all(|one| *one != Disguise::Unknown) {
            *self.mirrored.lock() = Some((pods.to_vec(), now, disguises.clone()));
        }
        Ok(disguises)
    }

    async fn mirrored_to(&self, pod: IpAddr, search: &Search, pods: &[IpAddr]) -> Maybe<Disguise> {
        let mut seen = Vec::new();
        for mirror in &search.mirrors {
            let look = Look {
                towards: Towards::Resolvers,
                path: Path {
                    from: pod,
                    to: (*mirror, self.shared),
                    resolver_port: self.shared,
                },
                count: AT_ONCE,
                pods,
                disguise: &Disguise::Unknown,
            };
            seen.push(self.seen(look).await?);
        }
        Ok(judge::disguise(seen))
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
                Some(Ok(holds)) => {
                    if holds {
                        self.reached.forget(search);
                    }
                    holds
                }
                Some(Err(silent)) => {
                    tracing::debug!(%silent, "a proof was not had");
                    false
                }
                None => false,
            }
        })
    }

    fn ours<'a>(&'a self, resolvers: &'a [Resolver]) -> BoxFuture<'a, Vec<Resolver>> {
        let ask = |pod| self.ask.activity(self.internal_of(pod));
        Box::pin(self.ours.among(resolvers, self.clock, ask))
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

/// The ways from a resolver to every port of an address.
fn paths(from: IpAddr, address: IpAddr, search: &Search) -> Option<Vec<Path>> {
    let ports = search.ports.iter().zip(&search.resolver_ports);
    let paths = ports.map(|(port, stand_in)| {
        Some(Path {
            from,
            to: (address, number(*port)?),
            resolver_port: number(*stand_in)?,
        })
    });
    paths.collect()
}

fn all(each: Vec<Maybe<bool>>) -> Maybe<bool> {
    each.into_iter().try_fold(true, |all, one| Ok(all && one?))
}

fn number(port: i32) -> Option<u16> {
    u16::try_from(port).ok()
}
