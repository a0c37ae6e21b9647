//! The elector against a server.

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, api::DeleteParams};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{clock::Clock, server::Server};

pub(super) fn candidate(namespace: &str, identity: &str, timings: Timings) -> Options {
    Options {
        namespace: namespace.into(),
        name: "neap".into(),
        identity: identity.into(),
        timings,
    }
}

/// A candidate that stands for election.
struct Stands {
    leadership: Leadership,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Stands {
    #[expect(clippy::disallowed_methods, reason = "a process of its own, in a test")]
    fn up(server: &Server, name: &str) -> Self {
        let options = candidate(server.namespace(), name, Timings::default());
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
async fn one_of_two_leads_and_the_other_knows_who() {
    let server = Server::open().await;
    let mut first = Stands::up(&server, "first");
    assert_eq!(first.leadership.gained().await, Term(0));
    let second = Stands::up(&server, "second");
    Clock::system().sleep(60 * SECOND).await;
    assert_eq!(first.leadership.check(), Ok(Term(0)));
    let holder = Some("first".to_owned());
    assert_eq!(second.leadership.check(), Err(NotLeading { holder }));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_is_followed_at_once() {
    let server = Server::open().await;
    let clock = Clock::system();
    let mut leader = Stands::up(&server, "a");
    leader.leadership.gained().await;
    let mut follower = Stands::up(&server, "b");
    clock.sleep(5 * SECOND).await;
    let stopped = clock.uptime();
    leader.stop().await;
    assert_eq!(follower.leadership.gained().await, Term(1));
    assert!(clock.uptime().saturating_sub(stopped) <= 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_writing_before_another_may() {
    let server = Server::open().await;
    let clock = Clock::system();
    let mut leader = Stands::up(&server, "a");
    let term = leader.leadership.gained().await;
    server.cut();
    let cut = clock.uptime();
    leader.leadership.lost(term).await;
    assert!(clock.uptime().saturating_sub(cut) <= Timings::default().deadline);
    assert!(leader.leadership.check().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_is_made_again_and_terms_go_on() {
    let server = Server::open().await;
    let leases: Api<Lease> = Api::default_namespaced(server.client.clone());
    let mut leader = Stands::up(&server, "a");
    leader.leadership.gained().await;
    let mut follower = Stands::up(&server, "b");
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
        "whoever led goes on"
    );
    assert!(follower.leadership.check().is_err());
    leader.task.abort();
    delete().await;
    let gone = clock.uptime();
    assert_eq!(follower.leadership.gained().await, Term(2));
    let waited = clock.uptime().saturating_sub(gone);
    let duration = Timings::default().duration;
    assert!(
        waited + 4 * SECOND > duration,
        "the one that is gone might have written until then: {waited:?}"
    );
}
