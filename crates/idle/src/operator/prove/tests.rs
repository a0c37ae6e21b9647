//! Proofs on a data plane that does what a test says.

use std::sync::atomic::{AtomicU16, Ordering};

use jiff::Timestamp;

use super::*;
use crate::service::prove::Question;

const SERVICE: &str = "10.96.0.1";
const MIRROR: &str = "10.96.0.2";
const NODE: &str = "192.168.0.1";
const HTTP: u16 = 80;
const STAND_IN: u16 = 20_000;

/// Who is behind the Service.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Behind {
    Resolver(usize),
    Pod,
    Nobody,
}

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
    sources: AtomicU16,
    /// Which resolver took what, at which port.
    took: Mutex<Vec<(usize, SocketAddr, u16)>>,
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
            sources: AtomicU16::new(40_000),
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
            let why = "refused".to_owned();
            return Err(Silent { resolver, why });
        }
        Ok(index)
    }

    /// The source of a connection that somebody took.
    fn connect(&self, from: usize, probe: &Probe, nth: usize) -> Option<SocketAddr> {
        let number = self.sources.fetch_add(1, Ordering::Relaxed);
        let source = SocketAddr::new(self.resolvers[from], number);
        let direct = self.resolvers.iter().position(|it| *it == probe.address);
        let (behind, port) = if let Some(direct) = direct {
            (Behind::Resolver(direct), probe.port)
        } else if probe.address == MIRROR.parse::<IpAddr>().unwrap() {
            (Behind::Resolver(nth % self.resolvers.len()), 8012)
        } else {
            (self.behind[nth % self.behind.len()], STAND_IN)
        };
        match behind {
            Nobody => None,
            Pod => Some(source),
            Behind::Resolver(to) if self.deaf.contains(&to) && port == STAND_IN => None,
            Behind::Resolver(to) => {
                let rewritten = self.rewrites && to == from && direct.is_none();
                let seen = if rewritten {
                    SocketAddr::new(NODE.parse().unwrap(), number.wrapping_add(7))
                } else {
                    source
                };
                self.took.lock().push((to, seen, port));
                Some(source)
            }
        }
    }

    fn took(&self, by: usize, asked: &Took) -> Taken {
        let took = self.took.lock();
        let mine = took.iter().filter(|(to, ..)| *to == by);
        let known = |source: &SocketAddr| asked.sources.contains(source);
        let (taken, others): (Vec<_>, Vec<_>) = mine
            .map(|(_, source, port)| (*source, *port))
            .partition(|(source, _)| known(source));
        let strangers = others
            .into_iter()
            .filter(|(_, port)| asked.ports.contains(port));
        Taken {
            taken: taken.into_iter().map(|(source, _)| source).collect(),
            strangers: strangers.map(|(source, _)| source).collect(),
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
            // What was there before is long ago.
            self.took.lock().clear();
            let tries = (0..probe.count as usize).map(|nth| self.connect(from, probe, nth));
            let (taken, failed): (Vec<_>, Vec<_>) = tries.partition(Option::is_some);
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
        Box::pin(async move { Ok(self.took(self.answers(resolver)?, asked)) })
    }

    fn activity(&self, resolver: SocketAddr) -> BoxFuture<'_, Result<Activity, Silent>> {
        Box::pin(async move {
            self.answers(resolver)?;
            Ok(Activity::default())
        })
    }
}

async fn proves(plane: Plane, towards: Towards, beside: bool) -> bool {
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
        ports: vec![HTTP.into()],
        resolver_ports: vec![STAND_IN.into()],
        mirrors: vec![MIRROR.parse().unwrap()],
        resolvers: resolvers.collect(),
    };
    let proofs = Proofs::new(Arc::new(plane), Clock::system(), (8013, 8012));
    proofs.prove(&search).await
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
