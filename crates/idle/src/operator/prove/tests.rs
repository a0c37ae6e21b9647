//! Proofs on a simulated data plane.

mod among_pods;

use std::sync::atomic::{AtomicU16, Ordering};

use jiff::Timestamp;

use super::*;
use crate::{
    api::wire::{AcceptedReport, ActivityReport, ProbeReport},
    elasti_service::reachability::Claim,
    http_api::CallError,
    trigger::jitter::Jitter,
};

const SERVICE: &str = "10.96.0.1";
const MIRROR: &str = "10.96.0.2";
const HTTP: u16 = 80;
const STAND_IN: u16 = 20_000;
/// How long a resolver reports a connection that it accepted.
const RETENTION: Duration = crate::resolver::accepted_connections::ACCEPTED_RETENTION;
/// How long a resolver keeps the connections of a probe open.
const PROBE_OPEN: Duration = Duration::from_millis(250);

/// An endpoint of the Service.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Behind {
    Resolver(usize),
    Pod,
    Unreachable,
}

/// Time, resolver, source and port of an accepted connection.
type AcceptedConnection = (Uptime, usize, SocketAddr, u16);

#[derive(Debug)]
struct SimulatedDataPlane {
    resolvers: Vec<IpAddr>,
    behind: Vec<Behind>,
    /// Connections of a resolver to itself get the address of the node as their source.
    rewrites: bool,
    /// Resolvers that do not listen yet.
    not_listening: Vec<usize>,
    /// Resolvers that do not respond.
    silent: Vec<usize>,
    /// Resolvers whose data plane still leads to pods.
    lagging: Mutex<Vec<usize>>,
    /// Endpoints are chosen at random instead of in turn.
    random: Option<Mutex<Jitter>>,
    /// The Service of the resolvers leads nowhere.
    blind: bool,
    /// How long a response is in transit.
    responds_after: Duration,
    /// How long a connection waits at a resolver port before it is accepted.
    accepts_after: Duration,
    /// During each proof another client on the node of the first resolver connects to that one.
    visited: bool,
    clock: Clock,
    sources: AtomicU16,
    /// The number of source ports of a machine.
    source_ports: u16,
    took: Mutex<Vec<AcceptedConnection>>,
}

impl SimulatedDataPlane {
    fn new(resolvers: usize, behind: &[Behind]) -> Self {
        let resolvers = (1..=resolvers).map(|last| format!("10.9.0.{last}").parse().unwrap());
        Self {
            resolvers: resolvers.collect(),
            behind: behind.to_vec(),
            rewrites: false,
            not_listening: Vec::new(),
            silent: Vec::new(),
            lagging: Mutex::default(),
            random: None,
            blind: false,
            responds_after: Duration::ZERO,
            accepts_after: Duration::ZERO,
            visited: false,
            clock: Clock::system(),
            sources: AtomicU16::new(40_000),
            source_ports: u16::MAX,
            took: Mutex::default(),
        }
    }

    fn index(&self, resolver: SocketAddr) -> usize {
        let mut all = self.resolvers.iter();
        all.position(|one| *one == resolver.ip()).unwrap()
    }

    fn answers(&self, resolver: SocketAddr) -> Result<usize, ResolverCallError> {
        let index = self.index(resolver);
        if self.silent.contains(&index) {
            let error = CallError::Failed("refused".to_owned());
            return Err(ResolverCallError { resolver, error });
        }
        Ok(index)
    }

    /// The source of a connection that was accepted.
    fn connect(&self, from: usize, probe: &ProbeRequest, nth: usize) -> Option<SocketAddr> {
        let number = self.sources.fetch_add(1, Ordering::Relaxed) % self.source_ports;
        let source = SocketAddr::new(self.resolvers[from], number);
        let direct = self.resolvers.iter().position(|it| *it == probe.address);
        let (behind, port) = if let Some(direct) = direct {
            (Behind::Resolver(direct), probe.port)
        } else if probe.address == MIRROR.parse::<IpAddr>().unwrap() {
            let mirror = Behind::Resolver(nth % self.resolvers.len());
            (if self.blind { Unreachable } else { mirror }, 8012)
        } else if self.lagging.lock().contains(&from) {
            (Pod, stand_in(probe.port))
        } else {
            (self.behind[self.chosen(nth)], stand_in(probe.port))
        };
        match behind {
            Unreachable => None,
            Pod => Some(source),
            Behind::Resolver(to) if self.not_listening.contains(&to) && port >= STAND_IN => None,
            Behind::Resolver(to) => {
                let rewritten = self.rewrites && to == from && direct.is_none();
                let seen = if rewritten {
                    SocketAddr::new(node(from), number.wrapping_add(7))
                } else {
                    source
                };
                self.note(to, seen, port);
                Some(source)
            }
        }
    }

    fn chosen(&self, nth: usize) -> usize {
        let Some(random) = &self.random else {
            return nth % self.behind.len();
        };
        let all = Duration::from_nanos(self.behind.len() as u64);
        random.lock().below(all).as_nanos() as usize
    }

    fn note(&self, by: usize, source: SocketAddr, port: u16) {
        let waits = if port >= STAND_IN {
            self.accepts_after
        } else {
            Duration::ZERO
        };
        let accepted = self.clock.uptime() + waits;
        self.took.lock().push((accepted, by, source, port));
    }

    fn visit(&self) {
        if self.visited {
            let number = self.sources.fetch_add(1, Ordering::Relaxed);
            self.note(0, SocketAddr::new(node(0), number), STAND_IN);
        }
    }

    fn took(&self, by: usize, asked: &AcceptedQuery) -> AcceptedReport {
        let took = self.took.lock();
        let now = self.clock.uptime();
        let mine = took.iter();
        let remembered = |accepted| now.saturating_sub(accepted) < RETENTION;
        let mine = mine
            .filter(|(accepted, to, ..)| *to == by && *accepted <= now && remembered(*accepted));
        let known = |source: &SocketAddr| asked.sources.contains(source);
        let (taken, others): (Vec<&AcceptedConnection>, Vec<&AcceptedConnection>) =
            mine.partition(|(_, _, source, _)| known(source));
        let lately = Duration::from_millis(asked.lately);
        let strangers = others.into_iter().filter(|(accepted, .., port)| {
            now.saturating_sub(*accepted) <= lately && asked.ports.contains(port)
        });
        AcceptedReport {
            taken: taken.into_iter().map(|it| it.2).collect(),
            strangers: strangers.map(|it| it.2).collect(),
        }
    }
}

impl ResolverApi for SimulatedDataPlane {
    fn probe<'a>(
        &'a self,
        resolver: SocketAddr,
        probe: &'a ProbeRequest,
    ) -> BoxFuture<'a, Result<ProbeReport, ResolverCallError>> {
        Box::pin(async move {
            let from = self.answers(resolver)?;
            self.visit();
            let tries = (0..probe.count as usize).map(|nth| self.connect(from, probe, nth));
            let (taken, failed): (Vec<_>, Vec<_>) = tries.partition(Option::is_some);
            self.clock.sleep(PROBE_OPEN).await;
            Ok(ProbeReport {
                sources: taken.into_iter().flatten().collect(),
                failed: failed.len().try_into().unwrap(),
            })
        })
    }

    fn accepted<'a>(
        &'a self,
        resolver: SocketAddr,
        query: &'a AcceptedQuery,
    ) -> BoxFuture<'a, Result<AcceptedReport, ResolverCallError>> {
        Box::pin(async move {
            self.clock.sleep(self.responds_after).await;
            Ok(self.took(self.answers(resolver)?, query))
        })
    }

    fn activity(
        &self,
        resolver: SocketAddr,
    ) -> BoxFuture<'_, Result<ActivityReport, ResolverCallError>> {
        Box::pin(async move {
            self.answers(resolver)?;
            Ok(ActivityReport::default())
        })
    }
}

async fn proves(plane: SimulatedDataPlane, towards: Towards, beside_resolvers: bool) -> bool {
    let (prover, request) = prepared(plane, towards, beside_resolvers);
    prover.prove(&request).await
}

fn prepared(
    plane: SimulatedDataPlane,
    towards: Towards,
    beside_resolvers: bool,
) -> (ResolverProver, ProofRequest) {
    prepared_with(Arc::new(plane), towards, beside_resolvers, 1)
}

fn prepared_with(
    plane: Arc<SimulatedDataPlane>,
    towards: Towards,
    beside_resolvers: bool,
    ports: u16,
) -> (ResolverProver, ProofRequest) {
    let clock = plane.clock;
    let resolvers = plane.resolvers.iter().enumerate();
    let resolvers = resolvers.map(|(index, address)| ResolverEndpoint {
        address: *address,
        pod: format!("resolver-{index}"),
        node: None,
        zone: None,
    });
    let request = ProofRequest {
        claim: Claim {
            towards,
            since: Timestamp::UNIX_EPOCH,
            beside_resolvers,
            resolvers: plane.resolvers.clone(),
        },
        addresses: vec![SERVICE.parse().unwrap()],
        ports: (HTTP..HTTP + ports).map(i32::from).collect(),
        resolver_ports: (STAND_IN..STAND_IN + ports).map(i32::from).collect(),
        resolver_service_addresses: vec![MIRROR.parse().unwrap()],
        resolvers: resolvers.collect(),
    };
    let prover = ResolverProver::new(plane, clock, (8013, 8012));
    (prover, request)
}

/// The resolver port that stands in for a port.
fn stand_in(port: u16) -> u16 {
    STAND_IN + port - HTTP
}

/// The address of the node of a resolver.
fn node(resolver: usize) -> IpAddr {
    format!("192.168.0.{}", resolver + 1).parse().unwrap()
}

use Behind::{Pod, Unreachable};

fn resolver(index: usize) -> Behind {
    Behind::Resolver(index)
}

#[tokio::test(start_paused = true)]
async fn a_proof_finds_where_connections_end() {
    let rows: [(&[Behind], [bool; 3]); 7] = [
        // The endpoints; whether resolvers, pods beside resolvers, and only pods are proved to be reached.
        (&[Pod], [false, true, true]),
        (&[Pod, resolver(0)], [true, true, false]),
        (&[resolver(0), resolver(1)], [true, false, false]),
        (&[resolver(0)], [true, false, false]),
        (&[Unreachable], [false, false, false]),
        (&[Pod, Unreachable], [false, true, true]),
        (&[resolver(0), Unreachable], [true, false, false]),
    ];
    for rewrites in [false, true] {
        for (behind, wanted) in rows {
            let plane = || SimulatedDataPlane {
                rewrites,
                ..SimulatedDataPlane::new(2, behind)
            };
            let found = [
                proves(plane(), Towards::Resolvers, true).await,
                proves(plane(), Towards::Pods, true).await,
                proves(plane(), Towards::Pods, false).await,
            ];
            assert_eq!(found, wanted, "{behind:?}, rewrites: {rewrites}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_resolver_that_only_ever_reaches_itself_is_recognized() {
    let plane = |behind: &[Behind]| SimulatedDataPlane {
        rewrites: true,
        ..SimulatedDataPlane::new(1, behind)
    };
    assert!(proves(plane(&[resolver(0)]), Towards::Resolvers, true).await);
    assert!(!proves(plane(&[resolver(0)]), Towards::Pods, true).await);
    assert!(!proves(plane(&[resolver(0)]), Towards::Pods, false).await);
    assert!(proves(plane(&[resolver(0), Pod]), Towards::Pods, true).await);
    assert!(proves(plane(&[Pod]), Towards::Pods, false).await);
}

#[tokio::test(start_paused = true)]
async fn every_resolver_must_answer_and_listen() {
    let behind = [resolver(0), resolver(1)];
    for index in [0, 1] {
        let silent = SimulatedDataPlane {
            silent: vec![index],
            ..SimulatedDataPlane::new(2, &behind)
        };
        assert!(!proves(silent, Towards::Resolvers, true).await);
        // Connections through the Service all reach the other one.
        let plane = SimulatedDataPlane {
            not_listening: vec![index],
            ..SimulatedDataPlane::new(2, &[resolver(1 - index)])
        };
        assert!(!proves(plane, Towards::Resolvers, true).await);
    }
    assert!(
        !proves(
            SimulatedDataPlane::new(0, &behind),
            Towards::Resolvers,
            true
        )
        .await
    );
}

#[tokio::test(start_paused = true)]
async fn without_connections_to_resolvers_source_nat_is_not_ruled_out() {
    let plane = |behind| SimulatedDataPlane {
        rewrites: true,
        blind: true,
        ..SimulatedDataPlane::new(1, &[behind])
    };
    assert!(!proves(plane(resolver(0)), Towards::Pods, true).await);
    assert!(!proves(plane(resolver(0)), Towards::Pods, false).await);
    assert!(proves(plane(Pod), Towards::Pods, false).await);
}

#[test]
fn source_nat_is_known_only_if_every_connection_is_accounted_for() {
    let node = node(0);
    let counts = |opened, by_resolvers, rewritten: &[IpAddr]| ConnectionCounts {
        opened,
        by_resolvers,
        rewritten: rewritten.to_vec(),
        ..ConnectionCounts::default()
    };
    let known = SourceNat::Known([node].into());
    for (all, expected) in [
        (vec![], SourceNat::Unknown),
        (vec![counts(0, 0, &[])], SourceNat::Unknown),
        (vec![counts(2, 1, &[])], SourceNat::Unknown),
        (vec![counts(2, 0, &[node])], SourceNat::Unknown),
        (
            vec![counts(2, 2, &[]), counts(0, 0, &[])],
            SourceNat::Unknown,
        ),
        (vec![counts(2, 2, &[])], SourceNat::None),
        // A connection of another client.
        (vec![counts(2, 2, &[node])], SourceNat::None),
        (vec![counts(2, 1, &[node])], known.clone()),
        (vec![counts(2, 2, &[]), counts(2, 0, &[node, node])], known),
    ] {
        let text = format!("{all:?}");
        assert_eq!(evaluate::source_nat(all), expected, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_source_nat_is_found_out_again() {
    for (blind, remembered) in [(true, false), (false, true)] {
        let plane = SimulatedDataPlane {
            blind,
            ..SimulatedDataPlane::new(1, &[Pod])
        };
        let (prover, request) = prepared(plane, Towards::Pods, false);
        prover.prove(&request).await;
        assert_eq!(prover.source_nats.lock().is_some(), remembered);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_response_hides_no_rewritten_connection() {
    let plane = |behind: &[Behind]| SimulatedDataPlane {
        rewrites: true,
        responds_after: Duration::from_secs(2),
        ..SimulatedDataPlane::new(1, behind)
    };
    assert!(!proves(plane(&[resolver(0)]), Towards::Pods, true).await);
    assert!(!proves(plane(&[resolver(0)]), Towards::Pods, false).await);
    assert!(proves(plane(&[resolver(0), Pod]), Towards::Pods, true).await);
    assert!(proves(plane(&[Pod]), Towards::Pods, false).await);
}

#[tokio::test(start_paused = true)]
async fn rewritten_connections_of_an_earlier_proof_do_not_count_in_the_next() {
    let plane = SimulatedDataPlane {
        rewrites: true,
        ..SimulatedDataPlane::new(1, &[resolver(0), Pod])
    };
    let (prover, request) = prepared(plane, Towards::Pods, true);
    for _ in 0..4 {
        assert!(prover.prove(&request).await);
    }
}

#[tokio::test(start_paused = true)]
async fn source_nat_of_one_resolver_proves_nothing_for_another() {
    let plane = |lagging: &[usize]| SimulatedDataPlane {
        rewrites: true,
        visited: true,
        lagging: Mutex::new(lagging.to_vec()),
        ..SimulatedDataPlane::new(2, &[resolver(0)])
    };
    assert!(proves(plane(&[]), Towards::Resolvers, true).await);
    assert!(!proves(plane(&[1]), Towards::Resolvers, true).await);
}

#[tokio::test(start_paused = true)]
async fn a_resolver_that_is_slow_to_accept_is_not_taken_for_a_pod() {
    for rewrites in [false, true] {
        let plane = |behind: &[Behind]| SimulatedDataPlane {
            rewrites,
            accepts_after: Duration::from_millis(500),
            ..SimulatedDataPlane::new(1, behind)
        };
        assert!(!proves(plane(&[resolver(0)]), Towards::Pods, true).await);
        assert!(!proves(plane(&[resolver(0)]), Towards::Pods, false).await);
        assert!(proves(plane(&[Pod]), Towards::Pods, false).await);
    }
}
