//! Proofs on a data plane that does what a test says.

mod among_pods;

use std::sync::atomic::{AtomicU16, Ordering};

use jiff::Timestamp;

use super::*;
use crate::{operator::asking::Unanswered, service::prove::Question, trigger::jitter::Jitter};

const SERVICE: &str = "10.96.0.1";
const MIRROR: &str = "10.96.0.2";
const HTTP: u16 = 80;
const STAND_IN: u16 = 20_000;
/// So long a resolver knows what it took.
const REMEMBERED_BY_THEM: Duration = crate::resolver::taken::REMEMBERED;
/// So long a resolver keeps connections of a proof open.
const OPEN: Duration = Duration::from_millis(250);

/// Who is behind the Service.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Behind {
    Resolver(usize),
    Pod,
    Nobody,
}

/// When which resolver took what, at which port.
type Note = (Uptime, usize, SocketAddr, u16);

#[derive(Debug)]
struct Plane {
    resolvers: Vec<IpAddr>,
    behind: Vec<Behind>,
    /// What leads a resolver to itself gets the address of the node.
    rewrites: bool,
    /// Resolvers that do not listen yet.
    deaf: Vec<usize>,
    /// Resolvers that do not answer.
    silent: Vec<usize>,
    /// Resolvers whose data plane leads to pods yet.
    lagging: Mutex<Vec<usize>>,
    /// Who takes a connection is left to chance, instead of one after the other.
    chance: Option<Mutex<Jitter>>,
    /// Nobody can be reached through the Service of the resolvers.
    blind: bool,
    /// So long an answer is on the way.
    answers_after: Duration,
    /// So long a connection waits at a stand-in port before it is accepted.
    accepts_after: Duration,
    /// During each proof somebody on the node of the first resolver reaches that one.
    visited: bool,
    clock: Clock,
    sources: AtomicU16,
    /// So many ports a machine has to connect from.
    machine_has: u16,
    took: Mutex<Vec<Note>>,
}

impl Plane {
    fn new(resolvers: usize, behind: &[Behind]) -> Self {
        let resolvers = (1..=resolvers).map(|last| format!("10.9.0.{last}").parse().unwrap());
        Self {
            resolvers: resolvers.collect(),
            behind: behind.to_vec(),
            rewrites: false,
            deaf: Vec::new(),
            silent: Vec::new(),
            lagging: Mutex::default(),
            chance: None,
            blind: false,
            answers_after: Duration::ZERO,
            accepts_after: Duration::ZERO,
            visited: false,
            clock: Clock::system(),
            sources: AtomicU16::new(40_000),
            machine_has: u16::MAX,
            took: Mutex::default(),
        }
    }

    fn index(&self, resolver: SocketAddr) -> usize {
        let mut all = self.resolvers.iter();
        all.position(|one| *one == resolver.ip()).unwrap()
    }

    fn answers(&self, resolver: SocketAddr) -> Result<usize, Silent> {
        let index = self.index(resolver);
        if self.silent.contains(&index) {
            let why = Unanswered::Failed("refused".to_owned());
            return Err(Silent { resolver, why });
        }
        Ok(index)
    }

    /// The source of a connection that somebody took.
    fn connect(&self, from: usize, probe: &Probe, nth: usize) -> Option<SocketAddr> {
        let number = self.sources.fetch_add(1, Ordering::Relaxed) % self.machine_has;
        let source = SocketAddr::new(self.resolvers[from], number);
        let direct = self.resolvers.iter().position(|it| *it == probe.address);
        let (behind, port) = if let Some(direct) = direct {
            (Behind::Resolver(direct), probe.port)
        } else if probe.address == MIRROR.parse::<IpAddr>().unwrap() {
            let mirror = Behind::Resolver(nth % self.resolvers.len());
            (if self.blind { Nobody } else { mirror }, 8012)
        } else if self.lagging.lock().contains(&from) {
            (Pod, stand_in(probe.port))
        } else {
            (self.behind[self.chosen(nth)], stand_in(probe.port))
        };
        match behind {
            Nobody => None,
            Pod => Some(source),
            Behind::Resolver(to) if self.deaf.contains(&to) && port >= STAND_IN => None,
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
        let Some(chance) = &self.chance else {
            return nth % self.behind.len();
        };
        let all = Duration::from_nanos(self.behind.len() as u64);
        chance.lock().below(all).as_nanos() as usize
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

    fn took(&self, by: usize, asked: &Took) -> Taken {
        let took = self.took.lock();
        let now = self.clock.uptime();
        let mine = took.iter();
        let remembered = |accepted| now.saturating_sub(accepted) < REMEMBERED_BY_THEM;
        let mine = mine
            .filter(|(accepted, to, ..)| *to == by && *accepted <= now && remembered(*accepted));
        let known = |source: &SocketAddr| asked.sources.contains(source);
        let (taken, others): (Vec<&Note>, Vec<&Note>) =
            mine.partition(|(_, _, source, _)| known(source));
        let lately = Duration::from_millis(asked.lately);
        let strangers = others.into_iter().filter(|(accepted, .., port)| {
            now.saturating_sub(*accepted) <= lately && asked.ports.contains(port)
        });
        Taken {
            taken: taken.into_iter().map(|it| it.2).collect(),
            strangers: strangers.map(|it| it.2).collect(),
        }
    }
}

impl Ask for Plane {
    fn probe<'a>(
        &'a self,
        resolver: SocketAddr,
        probe: &'a Probe,
    ) -> BoxFuture<'a, Result<Probed, Silent>> {
        Box::pin(async move {
            let from = self.answers(resolver)?;
            self.visit();
            let tries = (0..probe.count as usize).map(|nth| self.connect(from, probe, nth));
            let (taken, failed): (Vec<_>, Vec<_>) = tries.partition(Option::is_some);
            self.clock.sleep(OPEN).await;
            Ok(Probed {
                sources: taken.into_iter().flatten().collect(),
                failed: failed.len().try_into().unwrap(),
            })
        })
    }

    fn taken<'a>(
        &'a self,
        resolver: SocketAddr,
        asked: &'a Took,
    ) -> BoxFuture<'a, Result<Taken, Silent>> {
        Box::pin(async move {
            self.clock.sleep(self.answers_after).await;
            Ok(self.took(self.answers(resolver)?, asked))
        })
    }

    fn activity(&self, resolver: SocketAddr) -> BoxFuture<'_, Result<Activity, Silent>> {
        Box::pin(async move {
            self.answers(resolver)?;
            Ok(Activity::default())
        })
    }
}

async fn proves(plane: Plane, towards: Towards, beside: bool) -> bool {
    let (proofs, search) = prepared(plane, towards, beside);
    proofs.prove(&search).await
}

fn prepared(plane: Plane, towards: Towards, beside: bool) -> (Proofs, Search) {
    prepared_with(Arc::new(plane), towards, beside, 1)
}

fn prepared_with(
    plane: Arc<Plane>,
    towards: Towards,
    beside: bool,
    ports: u16,
) -> (Proofs, Search) {
    let clock = plane.clock;
    let resolvers = plane.resolvers.iter().enumerate();
    let resolvers = resolvers.map(|(index, address)| Resolver {
        address: *address,
        pod: format!("resolver-{index}"),
        node: None,
        zone: None,
    });
    let search = Search {
        question: Question {
            towards,
            since: Timestamp::UNIX_EPOCH,
            beside,
            resolvers: plane.resolvers.clone(),
        },
        addresses: vec![SERVICE.parse().unwrap()],
        ports: (HTTP..HTTP + ports).map(i32::from).collect(),
        resolver_ports: (STAND_IN..STAND_IN + ports).map(i32::from).collect(),
        mirrors: vec![MIRROR.parse().unwrap()],
        resolvers: resolvers.collect(),
    };
    let proofs = Proofs::new(plane, clock, (8013, 8012));
    (proofs, search)
}

/// Where resolvers stand in for a port.
fn stand_in(port: u16) -> u16 {
    STAND_IN + port - HTTP
}

/// The address of the node that a resolver is on.
fn node(resolver: usize) -> IpAddr {
    format!("192.168.0.{}", resolver + 1).parse().unwrap()
}

use Behind::{Nobody, Pod};

fn resolver(index: usize) -> Behind {
    Behind::Resolver(index)
}

#[tokio::test(start_paused = true)]
async fn a_proof_says_where_connections_end() {
    let rows: [(&[Behind], [bool; 3]); 7] = [
        // Who is behind the Service; whether resolvers are reached, pods too, pods alone.
        (&[Pod], [false, true, true]),
        (&[Pod, resolver(0)], [true, true, false]),
        (&[resolver(0), resolver(1)], [true, false, false]),
        (&[resolver(0)], [true, false, false]),
        (&[Nobody], [false, false, false]),
        (&[Pod, Nobody], [false, true, true]),
        (&[resolver(0), Nobody], [true, false, false]),
    ];
    for rewrites in [false, true] {
        for (behind, wanted) in rows {
            let plane = || Plane {
                rewrites,
                ..Plane::new(2, behind)
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
    let plane = |behind: &[Behind]| Plane {
        rewrites: true,
        ..Plane::new(1, behind)
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
        let silent = Plane {
            silent: vec![index],
            ..Plane::new(2, &behind)
        };
        assert!(!proves(silent, Towards::Resolvers, true).await);
        // Nobody would notice through the Service, which leads to the other one.
        let deaf = Plane {
            deaf: vec![index],
            ..Plane::new(2, &[resolver(1 - index)])
        };
        assert!(!proves(deaf, Towards::Resolvers, true).await);
    }
    assert!(!proves(Plane::new(0, &behind), Towards::Resolvers, true).await);
}

#[tokio::test(start_paused = true)]
async fn a_mirror_that_shows_nothing_rules_no_disguise_out() {
    let plane = |behind| Plane {
        rewrites: true,
        blind: true,
        ..Plane::new(1, &[behind])
    };
    assert!(!proves(plane(resolver(0)), Towards::Pods, true).await);
    assert!(!proves(plane(resolver(0)), Towards::Pods, false).await);
    assert!(proves(plane(Pod), Towards::Pods, false).await);
}

#[test]
fn a_mirror_shows_disguises_only_if_every_connection_is_accounted_for() {
    let node = node(0);
    let seen = |opened, by_resolvers, disguised: &[IpAddr]| Seen {
        opened,
        by_resolvers,
        disguised: disguised.to_vec(),
        ..Seen::default()
    };
    let known = Disguise::Known([node].into());
    for (mirrors, shown) in [
        (vec![], Disguise::Unknown),
        (vec![seen(0, 0, &[])], Disguise::Unknown),
        (vec![seen(2, 1, &[])], Disguise::Unknown),
        (vec![seen(2, 0, &[node])], Disguise::Unknown),
        (vec![seen(2, 2, &[]), seen(0, 0, &[])], Disguise::Unknown),
        (vec![seen(2, 2, &[])], Disguise::None),
        // Somebody else came by.
        (vec![seen(2, 2, &[node])], Disguise::None),
        (vec![seen(2, 1, &[node])], known.clone()),
        (vec![seen(2, 2, &[]), seen(2, 0, &[node, node])], known),
    ] {
        let told = format!("{mirrors:?}");
        assert_eq!(judge::disguise(mirrors), shown, "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_mirror_could_not_show_is_looked_at_again() {
    for (blind, remembered) in [(true, false), (false, true)] {
        let plane = Plane {
            blind,
            ..Plane::new(1, &[Pod])
        };
        let (proofs, search) = prepared(plane, Towards::Pods, false);
        proofs.prove(&search).await;
        assert_eq!(proofs.mirrored.lock().is_some(), remembered);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_takes_long_hides_no_disguised_connection() {
    let plane = |behind: &[Behind]| Plane {
        rewrites: true,
        answers_after: Duration::from_secs(2),
        ..Plane::new(1, behind)
    };
    assert!(!proves(plane(&[resolver(0)]), Towards::Pods, true).await);
    assert!(!proves(plane(&[resolver(0)]), Towards::Pods, false).await);
    assert!(proves(plane(&[resolver(0), Pod]), Towards::Pods, true).await);
    assert!(proves(plane(&[Pod]), Towards::Pods, false).await);
}

#[tokio::test(start_paused = true)]
async fn disguised_connections_of_an_earlier_proof_do_not_count_in_the_next() {
    let plane = Plane {
        rewrites: true,
        ..Plane::new(1, &[resolver(0), Pod])
    };
    let (proofs, search) = prepared(plane, Towards::Pods, true);
    for _ in 0..4 {
        assert!(proofs.prove(&search).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_disguise_of_one_resolver_proves_nothing_for_another() {
    let plane = |lagging: &[usize]| Plane {
        rewrites: true,
        visited: true,
        lagging: Mutex::new(lagging.to_vec()),
        ..Plane::new(2, &[resolver(0)])
    };
    assert!(proves(plane(&[]), Towards::Resolvers, true).await);
    assert!(!proves(plane(&[1]), Towards::Resolvers, true).await);
}

#[tokio::test(start_paused = true)]
async fn a_resolver_that_is_slow_to_accept_is_not_taken_for_a_pod() {
    for rewrites in [false, true] {
        let plane = |behind: &[Behind]| Plane {
            rewrites,
            accepts_after: Duration::from_millis(500),
            ..Plane::new(1, behind)
        };
        assert!(!proves(plane(&[resolver(0)]), Towards::Pods, true).await);
        assert!(!proves(plane(&[resolver(0)]), Towards::Pods, false).await);
        assert!(proves(plane(&[Pod]), Towards::Pods, false).await);
    }
}
