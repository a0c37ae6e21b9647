//! Ten thousand takeovers in virtual time: leaders that are killed, stopped for a while or ended in
//! order, at any moment, on machines whose clocks disagree.

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

/// Where hours pass in milliseconds, and where each takes its time.
const ROUNDS: (u64, u64) = (10_000, 6);
/// After the last renewal of a leader that is gone.
const GONE: Duration = Duration::from_secs(16);
/// After a leader was asked to end.
const ENDED: Duration = Duration::from_secs(2);

/// A process that can be stopped between any two of its steps.
struct Stoppable<F> {
    stopped: Arc<(AtomicBool, AtomicWaker)>,
    work: Pin<Box<F>>,
}

impl<F: Future<Output = ()>> Future for Stoppable<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.stopped.1.register(context.waker());
        if self.stopped.0.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        self.work.as_mut().poll(context)
    }
}

struct Process {
    clock: Clock,
    leadership: Leadership,
    stopped: Arc<(AtomicBool, AtomicWaker)>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Process {
    #[expect(clippy::disallowed_methods, reason = "a process of its own, in a test")]
    fn start(server: &Server, name: &str, clock: Clock) -> Self {
        let options = candidate(server.namespace(), name, Timings::default());
        let client = server.client.clone();
        let (elector, leadership) = Elector::new(client, options, clock).unwrap();
        let stop = CancellationToken::new();
        let stopped = Arc::<(AtomicBool, AtomicWaker)>::default();
        let task = tokio::spawn(Stoppable {
            stopped: stopped.clone(),
            work: Box::pin(elector.run(stop.clone())),
        });
        Self {
            clock,
            leadership,
            stopped,
            stop,
            task,
        }
    }

    fn halt(&self) {
        self.stopped.0.store(true, Ordering::Release);
    }

    fn go_on(&self) {
        self.stopped.0.store(false, Ordering::Release);
        self.stopped.1.wake();
    }

    /// How long ago, by its own hands, it began its last renewal.
    async fn since_renewal(&self, leases: &Api<Lease>) -> Duration {
        let lease = leases.get("neap").await.unwrap();
        let renewed = Record::from(&lease.spec.unwrap()).renewed.unwrap();
        let since = self.clock.now().duration_since(renewed);
        assert!(!since.is_negative(), "{since:?}");
        since.unsigned_abs()
    }
}

/// The same choices each time.
struct Choices(u64);

impl Choices {
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

    /// A clock whose hands are up to an hour off.
    fn clock(&mut self, right: Clock) -> Clock {
        let seconds = i64::try_from(self.below(7200)).unwrap() - 3600;
        right.skewed(SignedDuration::from_secs(seconds))
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_gone_is_followed_in_time() {
    let server = Server::open().await;
    let rounds = server.times(ROUNDS.0, ROUNDS.1);
    let leases: Api<Lease> = Api::default_namespaced(server.client.clone());
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let mut choices = Choices(41);
    let mut leader = Process::start(&server, "candidate-0", choices.clock(clock));
    leader.leadership.gained().await;
    let (mut killed, mut stopped, mut ended) = (0, 0, 0);
    for round in 1..=rounds {
        let name = format!("candidate-{round}");
        let mut follower = Process::start(&server, &name, choices.clock(clock));
        // Long enough for the follower to have seen a renewal.
        let moment = Timings::default().retry + choices.moment(4 * SECOND);
        clock.sleep(moment).await;
        let age = leader.since_renewal(&leases).await;
        let gone = clock.uptime();
        let waited = |age| clock.uptime().saturating_sub(gone) + age;
        match choices.below(3) {
            0 => {
                leader.task.abort();
                follower.leadership.gained().await;
                let took = waited(age);
                assert!(took <= GONE, "round {round}: {took:?} after a kill");
                killed += 1;
            }
            1 => {
                leader.halt();
                follower.leadership.gained().await;
                let took = waited(age);
                assert!(took <= GONE, "round {round}: {took:?} after a stop");
                clock.sleep(choices.moment(4 * SECOND)).await;
                leader.go_on();
                // Before it has had the time to find out anything, and after.
                assert!(leader.leadership.check().is_err(), "round {round}");
                clock.sleep(choices.moment(SECOND)).await;
                assert!(leader.leadership.check().is_err(), "round {round}");
                assert!(follower.leadership.check().is_ok(), "round {round}");
                leader.task.abort();
                stopped += 1;
            }
            _ => {
                leader.stop.cancel();
                follower.leadership.gained().await;
                let took = waited(Duration::ZERO);
                assert!(took <= ENDED, "round {round}: {took:?} after an end");
                ended += 1;
            }
        }
        leader = follower;
    }
    for count in [killed, stopped, ended] {
        assert!(count >= (rounds / 4).max(1), "{killed} {stopped} {ended}");
    }
}
