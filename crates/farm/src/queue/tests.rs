//! The client against an emulated scheduler, without a socket.

use std::sync::Arc;

use neap_emulators::{
    build_queue::{BuildQueue as Scheduler, SizeClassQueueName},
    system::System,
};
use neap_kit::{client, clock::Clock};
use tonic::body::Body;

use super::*;
use crate::api::PlatformProperty;

#[derive(Debug)]
struct InMemory(Arc<Scheduler>);

impl Dial for InMemory {
    fn dial(&self, _: &str) -> Result<Connection, String> {
        let scheduler = self.0.clone();
        Ok(Connection::new(tower::service_fn(
            move |request: http::Request<Body>| {
                let answer = scheduler.clone().respond(request.map(client::Body::new));
                async move { Ok::<_, ConnectionError>(answer.await.map(Body::new)) }
            },
        )))
    }
}

/// Never answers.
#[derive(Debug)]
struct Silent;

impl Dial for Silent {
    fn dial(&self, _: &str) -> Result<Connection, String> {
        Ok(Connection::new(tower::service_fn(
            |_: http::Request<Body>| {
                std::future::pending::<Result<http::Response<Body>, ConnectionError>>()
            },
        )))
    }
}

const ADDRESS: &str = "10.0.0.1:8984";

fn id(pod: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("pod".to_owned(), pod.to_owned())])
}

fn linux() -> QueueName {
    QueueName {
        platform: vec![PlatformProperty::new("OSFamily", "linux")],
        ..QueueName::default()
    }
}

fn scheduler() -> (Arc<Scheduler>, GrpcBuildQueue<InMemory>) {
    let scheduler = Arc::new(Scheduler::default());
    let client = GrpcBuildQueue::with_dial(InMemory(scheduler.clone()), Clock::system());
    (scheduler, client)
}

#[tokio::test(start_paused = true)]
async fn drains_are_set_listed_and_ended() {
    let (scheduler, client) = scheduler();
    let name = SizeClassQueueName::of_platform(&[("OSFamily", "linux")]);
    for pod in ["a", "b"] {
        scheduler.register(&name, id(pod), None);
    }
    scheduler.execute(&name, "action").unwrap();
    client
        .set_drain(ADDRESS, &linux(), &id("a"), true)
        .await
        .unwrap();
    let facts = client.queue(ADDRESS, &linux()).await.unwrap();
    assert_eq!(facts.drains, [id("a")]);
    let worker = |pod, executing, drained| WorkerFacts {
        id: id(pod),
        executing,
        drained,
    };
    assert_eq!(
        facts.workers,
        [worker("a", true, true), worker("b", false, false)]
    );
    assert_eq!((facts.operations, facts.unknown), (1, false));
    let queues = client.queues(ADDRESS).await.unwrap();
    let expected = QueueState {
        name: linux(),
        workers: 2,
        queued: 0,
        executing: 1,
        drains: 1,
    };
    assert_eq!(queues, [expected]);
    client
        .set_drain(ADDRESS, &linux(), &id("a"), false)
        .await
        .unwrap();
    assert!(scheduler.drains().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_the_scheduler_does_not_know_is_no_failure() {
    let (_, client) = scheduler();
    let facts = client.queue(ADDRESS, &linux()).await.unwrap();
    assert!(facts.unknown && facts.workers.is_empty());
    client
        .set_drain(ADDRESS, &linux(), &id("a"), true)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn all_pages_of_workers_are_read() {
    let (scheduler, client) = scheduler();
    let name = SizeClassQueueName::of_platform(&[("OSFamily", "linux")]);
    for number in 0..2500 {
        scheduler.register(&name, id(&format!("w-{number:04}")), None);
    }
    let workers = client.workers(ADDRESS, &linux()).await.unwrap();
    assert_eq!(workers.len(), 2500);
    assert_eq!(workers[2499].id, id("w-2499"));
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_that_does_not_answer_is_unreachable() {
    let client = GrpcBuildQueue::with_dial(Silent, Clock::system());
    let error = client.queues(ADDRESS).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert_eq!(error.code(), Code("NT-FARM-0004"));
}
