//! Ten thousand takeovers in virtual time: leaders that are killed, suspended or stopped in order, at
//! random moments, on machines whose clocks disagree.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use futures::task::AtomicWaker;
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{server::candidate, *};
use crate::{clock::Clock, server::Server};

/// The number of takeovers under a paused clock, and under a real one.
const ROUNDS: (u64, u64) = (10_000, 6);
/// The longest time from the last renewal of a dead or suspended leader to the next leader.
const MAX_EXPIRY_TAKEOVER: Duration = Duration::from_secs(16);
/// The longest time from the stop of a leader to the next leader.
const MAX_RELEASE_TAKEOVER: Duration = Duration::from_secs(2);

/// A task that can be suspended between any two polls.
struct Suspendable<F> {
    suspended: Arc<(AtomicBool, AtomicWaker)>,
    work: Pin<Box<F>>,
}

impl<F: Future<Output = ()>> Future for Suspendable<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.suspended.1.register(context.waker());
        if self.suspended.0.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        self.work.as_mut().poll(context)
    }
}

struct CandidateProcess {
    clock: Clock,
    leadership: Leadership,
    suspended: Arc<(AtomicBool, AtomicWaker)>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl CandidateProcess {
    #[expect(clippy::disallowed_methods, reason = "a process of its own, in a test")]
    fn start(server: &Server, name: &str, clock: Clock) -> Self {
        let options = candidate(server.namespace(), name, LeaseTimings::default());
        let client = server.client.clone();
        let (elector, leadership) = Elector::new(client, options, clock).unwrap();
        let stop = CancellationToken::new();
        let suspended = Arc::<(AtomicBool, AtomicWaker)>::default();
        let task = tokio::spawn(Suspendable {
            suspended: suspended.clone(),
            work: Box::pin(elector.run(stop.clone())),
        });
        Self {
            clock,
            leadership,
            suspended,
            stop,
            task,
        }
    }

    fn suspend(&self) {
        self.suspended.0.store(true, Ordering::Release);
    }

    fn resume(&self) {
        self.suspended.0.store(false, Ordering::Release);
        self.suspended.1.wake();
    }

    /// The time since its last renewal, by its own clock.
    async fn since_renewal(&self, leases: &Api<Lease>) -> Duration {
        let lease = leases.get("neap").await.unwrap();
        let renewed = LeaseRecord::from(&lease.spec.unwrap()).renewed.unwrap();
        let since = self.clock.now().duration_since(renewed);
        assert!(!since.is_negative(), "{since:?}");
        since.unsigned_abs()
    }
}

/// A deterministic random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn moment(&mut self, limit: Duration) -> Duration {
        Duration::from_millis(self.below(u64::try_from(limit.as_millis()).unwrap()))
    }

    /// A clock that is up to an hour off.
    fn clock(&mut self, right: Clock) -> Clock {
        let seconds = i64::try_from(self.below(7200)).unwrap() - 3600;
        right.skewed(SignedDuration::from_secs(seconds))
    }
}

#[tokio::test(start_paused = true)]
async fn another_candidate_takes_over_in_time_however_the_leader_ends() {
    let server = Server::open().await;
    let rounds = server.by_clock(ROUNDS.0, ROUNDS.1);
    let leases: Api<Lease> = Api::default_namespaced(server.client.clone());
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let mut random = Random(41);
    let mut leader = CandidateProcess::start(&server, "candidate-0", random.clock(clock));
    leader.leadership.gained().await;
    let (mut killed, mut suspended, mut ended) = (0, 0, 0);
    for round in 1..=rounds {
        let name = format!("candidate-{round}");
        let mut follower = CandidateProcess::start(&server, &name, random.clock(clock));
        // Long enough for the follower to have seen a renewal.
        let moment = LeaseTimings::default().retry_period + random.moment(4 * SECOND);
        clock.sleep(moment).await;
        let age = leader.since_renewal(&leases).await;
        let gone = clock.uptime();
        let waited = |age| clock.uptime().saturating_sub(gone) + age;
        match random.below(3) {
            0 => {
                leader.task.abort();
                follower.leadership.gained().await;
                let took = waited(age);
                assert!(
                    took <= MAX_EXPIRY_TAKEOVER,
                    "round {round}: {took:?} after a kill"
                );
                killed += 1;
            }
            1 => {
                leader.suspend();
                follower.leadership.gained().await;
                let took = waited(age);
                assert!(
                    took <= MAX_EXPIRY_TAKEOVER,
                    "round {round}: {took:?} after a suspension"
                );
                clock.sleep(random.moment(4 * SECOND)).await;
                leader.resume();
                // Before it could read the Lease, and after.
                assert!(leader.leadership.check().is_err(), "round {round}");
                clock.sleep(random.moment(SECOND)).await;
                assert!(leader.leadership.check().is_err(), "round {round}");
                assert!(follower.leadership.check().is_ok(), "round {round}");
                leader.task.abort();
                suspended += 1;
            }
            _ => {
                leader.stop.cancel();
                follower.leadership.gained().await;
                let took = waited(Duration::ZERO);
                assert!(
                    took <= MAX_RELEASE_TAKEOVER,
                    "round {round}: {took:?} after a stop"
                );
                ended += 1;
            }
        }
        leader = follower;
    }
    for count in [killed, suspended, ended] {
        assert!(count >= (rounds / 4).max(1), "{killed} {suspended} {ended}");
    }
}
