//! Proves where the data plane routes, with the help of the resolvers.
//!
//! Each resolver opens connections to the address of a Service and closes them without sending a byte. Then
//! all resolvers report which of these they accepted, by source address and port. A connection that was
//! accepted, and not by a resolver, was accepted by a pod.
//!
//! The data plane may rewrite the source of a connection: that of a connection of a node to itself, or every
//! source. Whether and to which address is found out first, with connections to the resolvers' own Service,
//! behind which there are only resolvers: each of these must be known to a resolver. If some are not, their
//! sources were rewritten to the unexpected addresses that the resolvers report instead (source NAT). A
//! connection from such an address to the port that stands in for this port of this Service then counts as
//! one of the probe.

mod accepted_reports;
mod accepted_sources;
mod compatible;
mod evaluate;
mod reached_paths;
mod resolver_api;
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

pub use self::resolver_api::ResolverApi;
use self::{
    accepted_reports::AcceptedReports,
    accepted_sources::AcceptedSources,
    compatible::CompatibleResolvers,
    evaluate::{ConnectionCounts, SourceNat, SourceNats},
    reached_paths::{ProbePath, ReachedPaths},
};
use crate::{
    api::{
        Breakdown, Towards,
        wire::{AcceptedQuery, ProbeRequest},
    },
    elasti_service::{
        facts::ResolverEndpoint,
        reachability::{ProofRequest, Prover},
    },
    http_api::CALL_TIMEOUT,
    resolver::client::{ListResolvers, ResolverCallError},
};

/// Connections of the first round; consecutive ones that must agree before the result counts.
const AGREEING_PROBES: u32 = 4;
/// Connections that show whether sources are rewritten, and that search for resolvers among many pods. A
/// resolver opens no more at the same time.
const MAX_PROBES: u32 = 16;
/// Rounds of connections where both resolvers and pods may accept them.
const ROUNDS: u32 = 4;
/// How long the result about source NAT is valid.
const SOURCE_NAT_TTL: Duration = Duration::from_mins(10);
/// The longest that a query to a resolver may take. With a slower one, connections with a rewritten source
/// are missed, and the claim is not proved.
const QUERY_TRANSIT: Duration = Duration::from_millis(50);
/// The time after which also a slow resolver has reported the connections that it accepted.
const SLOW_ACCEPT: Duration = Duration::from_millis(400);
/// The longest that a whole proof may take.
const PROOF_TIMEOUT: Duration = Duration::from_secs(30);

/// Proves claims by calls to every resolver.
pub struct ResolverProver {
    api: Arc<dyn ResolverApi>,
    clock: Clock,
    /// The internal port of resolvers.
    internal_port: u16,
    /// The port of resolvers that all services share.
    shared_port: u16,
    /// All resolvers that run: one that shuts down may still be reached.
    all_resolvers: Option<ListResolvers>,
    /// The last source NATs, and the resolvers for which they were found out.
    source_nats: Mutex<Option<(Vec<IpAddr>, Uptime, SourceNats)>>,
    /// The resolvers of our kind.
    compatible: CompatibleResolvers,
    /// The paths on which earlier attempts reached resolvers.
    reached: ReachedPaths,
    /// The sources of earlier connections.
    sources: AcceptedSources,
}

/// A number of connections on one path, and the resolvers that report on them.
struct ProbeRun<'a> {
    towards: Towards,
    path: ProbePath,
    count: u32,
    pods: &'a [IpAddr],
    source_nat: &'a SourceNat,
}

/// A call to a resolver that fails leaves the claim unproved.
type CallResult<T> = Result<T, ResolverCallError>;

impl ResolverProver {
    /// A prover that calls resolvers at their `internal` port; `shared` is the port of all services.
    pub fn new(api: Arc<dyn ResolverApi>, clock: Clock, (internal, shared): (u16, u16)) -> Self {
        Self {
            all_resolvers: None,
            api,
            clock,
            internal_port: internal,
            shared_port: shared,
            source_nats: Mutex::default(),
            compatible: CompatibleResolvers::default(),
            reached: ReachedPaths::default(),
            sources: AcceptedSources::default(),
        }
    }

    /// The same prover, which also queries all resolvers that `list` has.
    pub fn with_resolvers(mut self, list: ListResolvers) -> Self {
        self.all_resolvers = Some(list);
        self
    }

    async fn check(&self, request: &ProofRequest) -> CallResult<bool> {
        let pods = pods(&request.resolvers);
        let source_nats = self.source_nats(request, &pods).await?;
        let towards = request.claim.towards;
        if towards == Towards::Resolvers && !self.all_listen(request, &pods).await? {
            return Ok(false);
        }
        let mut from: Vec<BoxFuture<'_, CallResult<bool>>> = Vec::new();
        for (pod, source_nat) in &source_nats {
            from.push(Box::pin(self.check_from(*pod, request, &pods, source_nat)));
        }
        // With rewritten sources one after the other, so that none counts the connections of another.
        let holds = if source_nats.values().all(|one| *one == SourceNat::None) {
            all(join_all(from).await)?
        } else {
            let mut holds = true;
            for from in from {
                holds = holds && from.await?;
            }
            holds
        };
        Ok(holds && !pods.is_empty() && !request.addresses.is_empty())
    }

    /// Whether every resolver accepts connections on the ports on which it is about to stand in: each is
    /// probed by the next one, without the data plane.
    async fn all_listen(&self, request: &ProofRequest, pods: &[IpAddr]) -> CallResult<bool> {
        let mut tries: Vec<BoxFuture<'_, CallResult<bool>>> = Vec::new();
        for (from, to) in pods.iter().zip(pods.iter().cycle().skip(1)) {
            for port in &request.resolver_ports {
                tries.push(Box::pin(self.listens(*from, *to, *port, pods)));
            }
        }
        all(join_all(tries).await)
    }

    async fn listens(
        &self,
        from: IpAddr,
        to: IpAddr,
        port: i32,
        pods: &[IpAddr],
    ) -> CallResult<bool> {
        let Some(port) = port_number(port) else {
            return Ok(false);
        };
        let run = ProbeRun {
            towards: Towards::Resolvers,
            path: ProbePath {
                from,
                to: (to, port),
                resolver_port: port,
            },
            count: 1,
            pods,
            source_nat: &SourceNat::None,
        };
        let counts = self.probe(run).await?;
        Ok(counts.by_resolvers == 1)
    }

    /// Whether the claim holds from one resolver, at every address and port.
    async fn check_from(
        &self,
        pod: IpAddr,
        request: &ProofRequest,
        pods: &[IpAddr],
        source_nat: &SourceNat,
    ) -> CallResult<bool> {
        for address in &request.addresses {
            let Some(paths) = paths(pod, *address, request) else {
                return Ok(false);
            };
            if !self
                .check_address(&paths, request, pods, source_nat)
                .await?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the claim holds at the ports of one address.
    async fn check_address(
        &self,
        paths: &[ProbePath],
        request: &ProofRequest,
        pods: &[IpAddr],
        source_nat: &SourceNat,
    ) -> CallResult<bool> {
        let (claim, now) = (&request.claim, self.clock.uptime());
        let before = |path| self.reached.at(request, path, now).unwrap_or_default();
        let mut ports: Vec<ConnectionCounts> = paths.iter().map(before).collect();
        let mut count = AGREEING_PROBES;
        for _ in 0..ROUNDS {
            let mut probes: Vec<BoxFuture<'_, CallResult<ConnectionCounts>>> = Vec::new();
            let mut open: Vec<(&ProbePath, &mut ConnectionCounts)> =
                paths.iter().zip(&mut ports).collect();
            open.retain(|(_, port)| !evaluate::is_sufficient(claim, port, source_nat));
            for (path, _) in &open {
                probes.push(Box::pin(self.probe(ProbeRun {
                    towards: claim.towards,
                    path: **path,
                    count,
                    pods,
                    source_nat,
                })));
            }
            for ((path, port), counts) in open.into_iter().zip(join_all(probes).await) {
                port.add(counts?);
                if evaluate::is_sufficient(claim, port, source_nat) {
                    let now = self.clock.uptime();
                    self.reached.record(request, *path, port.clone(), now);
                }
            }
            if evaluate::holds(claim, &ports, source_nat) {
                return Ok(true);
            }
            if evaluate::is_final(claim) {
                break;
            }
            // There may be many more endpoints of the other side.
            count = MAX_PROBES;
        }
        Ok(false)
    }

    /// Opens connections from a resolver, and counts who accepted them.
    async fn probe(&self, run: ProbeRun<'_>) -> CallResult<ConnectionCounts> {
        let before = self.unexpected_before(&run).await?;
        let begun = self.clock.uptime();
        let (address, port) = run.path.to;
        let probe = ProbeRequest {
            address,
            port,
            count: run.count,
        };
        let probed = self
            .api
            .probe(self.internal_address(run.path.from), &probe)
            .await?;
        let mut reports = self.query(&run, &probed.sources, begun).await?;
        // Pods do not report what they accepted, so resolvers that may have accepted it are queried twice.
        if run.towards == Towards::Pods && reports.accepted.len() < probed.sources.len() {
            self.clock.sleep(SLOW_ACCEPT).await;
            reports.join(self.query(&run, &probed.sources, begun).await?);
        }
        let unexpected = reports.unexpected_since(&before).into_iter();
        Ok(ConnectionCounts {
            opened: probed.sources.len(),
            by_resolvers: reports.accepted.len(),
            repeated: self.sources.record(&reports.accepted, self.clock.uptime()),
            rewritten: unexpected.filter(|it| run.source_nat.may_be(*it)).collect(),
            failed: probed.failed as usize,
        })
    }

    /// The unexpected sources from before the probe, which are not of it. Without them the query could not
    /// cover a time that is long enough to miss none: connections of earlier probes would count.
    async fn unexpected_before(&self, run: &ProbeRun<'_>) -> CallResult<AcceptedReports> {
        if run.towards == Towards::Resolvers || *run.source_nat == SourceNat::None {
            return Ok(AcceptedReports::default());
        }
        self.query(run, &[], self.clock.uptime()).await
    }

    /// What all resolvers report about `sources`, and the unexpected sources since then. Towards pods none
    /// may be missed, however long a response takes; towards resolvers no older one may count.
    async fn query(
        &self,
        run: &ProbeRun<'_>,
        sources: &[SocketAddr],
        since: Uptime,
    ) -> CallResult<AcceptedReports> {
        let transit = match run.towards {
            Towards::Pods => CALL_TIMEOUT,
            Towards::Resolvers => QUERY_TRANSIT,
        };
        let lately = self.clock.uptime().saturating_sub(since) + transit;
        let query = AcceptedQuery {
            sources: sources.to_vec(),
            ports: vec![run.path.resolver_port],
            lately: u64::try_from(lately.as_millis()).unwrap_or(u64::MAX),
        };
        let ready = run.pods.iter().map(|pod| self.internal_address(*pod));
        let all = self.all_resolvers.as_ref().map(|list| list());
        let resolvers: BTreeSet<_> = ready.chain(all.unwrap_or_default()).collect();
        let calls = resolvers.iter().map(|one| self.api.accepted(*one, &query));
        let responses = join_all(calls).await;
        let mut reports = AcceptedReports::default();
        for (resolver, response) in resolvers.iter().zip(responses) {
            reports.add(*resolver, response?);
        }
        Ok(reports)
    }

    /// How the data plane rewrites the sources of each resolver's connections.
    async fn source_nats(&self, request: &ProofRequest, pods: &[IpAddr]) -> CallResult<SourceNats> {
        let now = self.clock.uptime();
        if let Some((known_for, since, source_nats)) = &*self.source_nats.lock()
            && known_for == pods
            && now.saturating_sub(*since) < SOURCE_NAT_TTL
        {
            return Ok(source_nats.clone());
        }
        let mut source_nats = SourceNats::new();
        for pod in pods {
            source_nats.insert(*pod, self.source_nat_of(*pod, request, pods).await?);
        }
        // An unknown one is found out again the next time.
        if source_nats.values().all(|one| *one != SourceNat::Unknown) {
            *self.source_nats.lock() = Some((pods.to_vec(), now, source_nats.clone()));
        }
        Ok(source_nats)
    }

    async fn source_nat_of(
        &self,
        pod: IpAddr,
        request: &ProofRequest,
        pods: &[IpAddr],
    ) -> CallResult<SourceNat> {
        let mut counts = Vec::new();
        for address in &request.resolver_service_addresses {
            let run = ProbeRun {
                towards: Towards::Resolvers,
                path: ProbePath {
                    from: pod,
                    to: (*address, self.shared_port),
                    resolver_port: self.shared_port,
                },
                count: MAX_PROBES,
                pods,
                source_nat: &SourceNat::Unknown,
            };
            counts.push(self.probe(run).await?);
        }
        Ok(evaluate::source_nat(counts))
    }

    fn internal_address(&self, pod: IpAddr) -> SocketAddr {
        SocketAddr::new(pod, self.internal_port)
    }
}

impl fmt::Debug for ResolverProver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proofs")
            .field("source_nats", &self.source_nats.lock())
            .finish_non_exhaustive()
    }
}

impl Prover for ResolverProver {
    fn prove<'a>(&'a self, request: &'a ProofRequest) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let checked = self.clock.within(PROOF_TIMEOUT, self.check(request)).await;
            match checked {
                Some(Ok(holds)) => {
                    if holds {
                        self.reached.remove(request);
                    }
                    holds
                }
                Some(Err(error)) => {
                    tracing::debug!(%error, "a claim could not be proved");
                    false
                }
                None => false,
            }
        })
    }

    fn select_compatible<'a>(
        &'a self,
        resolvers: &'a [ResolverEndpoint],
    ) -> BoxFuture<'a, Vec<ResolverEndpoint>> {
        let call = |pod| self.api.activity(self.internal_address(pod));
        Box::pin(self.compatible.among(resolvers, self.clock, call))
    }

    fn cold_start<'a>(
        &'a self,
        service: &'a Key,
        since: Timestamp,
        resolvers: &'a [ResolverEndpoint],
    ) -> BoxFuture<'a, Option<Breakdown>> {
        Box::pin(async move {
            let pods = pods(resolvers);
            let mut calls = Vec::new();
            for pod in pods {
                calls.push(self.api.activity(self.internal_address(pod)));
            }
            let reports = join_all(calls).await.into_iter().flatten();
            let name = service.to_string();
            let cold = reports.filter_map(|mut report| report.services.remove(&name)?.cold);
            let cold = cold.filter(|cold| cold.served >= since);
            let cold = cold.map(|cold| cold.breakdown);
            cold.max_by_key(|breakdown| breakdown.total())
        })
    }
}

/// One address of every pod: the first.
fn pods(resolvers: &[ResolverEndpoint]) -> Vec<IpAddr> {
    let mut pods = BTreeMap::new();
    for resolver in resolvers {
        pods.entry(&resolver.pod).or_insert(resolver.address);
    }
    pods.into_values().collect()
}

/// The paths from a resolver to every port of an address.
fn paths(from: IpAddr, address: IpAddr, request: &ProofRequest) -> Option<Vec<ProbePath>> {
    let ports = request.ports.iter().zip(&request.resolver_ports);
    let paths = ports.map(|(port, stand_in)| {
        Some(ProbePath {
            from,
            to: (address, port_number(*port)?),
            resolver_port: port_number(*stand_in)?,
        })
    });
    paths.collect()
}

fn all(each: Vec<CallResult<bool>>) -> CallResult<bool> {
    each.into_iter().try_fold(true, |all, one| Ok(all && one?))
}

fn port_number(port: i32) -> Option<u16> {
    u16::try_from(port).ok()
}
