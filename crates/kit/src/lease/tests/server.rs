//! The elector with a server.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use http::{Request, Response};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, api::DeleteParams, client::Body};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{clock::Clock, server::Server};

pub(super) fn candidate(namespace: &str, identity: &str, timings: LeaseTimings) -> ElectionOptions {
    ElectionOptions {
        namespace: namespace.into(),
        name: "neap".into(),
        identity: identity.into(),
        timings,
    }
}

/// A running candidate.
struct RunningCandidate {
    leadership: Leadership,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl RunningCandidate {
    #[expect(clippy::disallowed_methods, reason = "a process of its own, in a test")]
    fn start(server: &Server, name: &str) -> Self {
        let options = candidate(server.namespace(), name, LeaseTimings::default());
        let (client, clock) = (server.client.clone(), Clock::system());
        let (elector, leadership) = Elector::new(client, options, clock).unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(elector.run(stop.clone()));
        Self {
            leadership,
            stop,
            task,
        }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_two_leads_and_the_other_knows_the_leader() {
    let server = Server::open().await;
    let mut first = RunningCandidate::start(&server, "first");
    assert_eq!(first.leadership.gained().await, Term(0));
    let second = RunningCandidate::start(&server, "second");
    Clock::system().sleep(60 * SECOND).await;
    assert_eq!(first.leadership.check(), Ok(Term(0)));
    let holder = Some("first".to_owned());
    assert_eq!(second.leadership.check(), Err(NotLeading { holder }));
}

#[tokio::test(start_paused = true)]
async fn another_candidate_leads_at_once_after_the_leader_has_stopped() {
    let server = Server::open().await;
    let clock = Clock::system();
    let mut leader = RunningCandidate::start(&server, "a");
    leader.leadership.gained().await;
    let mut follower = RunningCandidate::start(&server, "b");
    clock.sleep(5 * SECOND).await;
    let stopped = clock.uptime();
    leader.stop().await;
    assert_eq!(follower.leadership.gained().await, Term(1));
    assert!(clock.uptime().saturating_sub(stopped) <= 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_writing_before_another_may_lead() {
    let server = Server::open().await;
    let clock = Clock::system();
    let mut leader = RunningCandidate::start(&server, "a");
    let term = leader.leadership.gained().await;
    server.disconnect();
    let cut = clock.uptime();
    leader.leadership.lost(term).await;
    assert!(clock.uptime().saturating_sub(cut) <= LeaseTimings::default().renew_deadline);
    assert!(leader.leadership.check().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_created_again_and_the_count_of_terms_continues() {
    let server = Server::open().await;
    let leases: Api<Lease> = Api::default_namespaced(server.client.clone());
    let mut leader = RunningCandidate::start(&server, "a");
    leader.leadership.gained().await;
    let mut follower = RunningCandidate::start(&server, "b");
    let clock = Clock::system();
    clock.sleep(5 * SECOND).await;
    let delete = async || {
        let parameters = DeleteParams::default();
        leases.delete("neap", &parameters).await.unwrap();
    };
    delete().await;
    clock.sleep(5 * SECOND).await;
    assert_eq!(
        leader.leadership.gained().await,
        Term(1),
        "the leader leads again"
    );
    assert!(follower.leadership.check().is_err());
    leader.task.abort();
    delete().await;
    let gone = clock.uptime();
    assert_eq!(follower.leadership.gained().await, Term(2));
    let waited = clock.uptime().saturating_sub(gone);
    let lease_duration = LeaseTimings::default().lease_duration;
    assert!(
        waited + 4 * SECOND > lease_duration,
        "the previous leader might have written until then: {waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_is_not_flooded_with_requests() {
    let requests = Arc::new(AtomicU32::new(0));
    let count = requests.clone();
    let refuses = tower::service_fn(move |_: Request<Body>| {
        let so_far = count.fetch_add(1, Ordering::Relaxed);
        async move {
            if so_far > 1000 {
                std::future::pending::<()>().await;
            }
            let mut answer = Response::new(Body::empty());
            *answer.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    let (client, clock) = (kube::Client::new(refuses, "default"), Clock::system());
    let options = candidate("default", "a", LeaseTimings::default());
    let (elector, leadership) = Elector::new(client, options, clock).unwrap();
    let state = Box::pin(elector.run(CancellationToken::new()));
    assert!(clock.within(60 * SECOND, state).await.is_none());
    assert!(leadership.check().is_err());
    let requests = requests.load(Ordering::Relaxed);
    assert!(
        (10..200).contains(&requests),
        "{requests} requests in a minute"
    );
}
