use std::{sync::atomic::Ordering, time::Duration};

use neap_idle::resolver::drain::{DrainState, DrainTimeouts, drain};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::{
    fixture::{ResolverFixture, read_until, until},
    pod::Pod,
};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn timeouts(held: u64) -> DrainTimeouts {
    DrainTimeouts {
        data_plane_lag: Duration::from_millis(20),
        held_requests: Duration::from_millis(held),
        in_flight: Duration::from_secs(10),
    }
}

#[tokio::test]
async fn a_request_held_at_shutdown_is_answered_if_a_pod_is_ready_in_time() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    let mut idle = fixture.connect().await;
    let request = fixture.exchange(GET);
    let ending = DrainState::default();
    let end = async {
        fixture.wait_until_held(1).await;
        let drain = drain(
            &fixture.resolver,
            &ending,
            &fixture.listeners,
            timeouts(20_000),
        );
        let pods = async {
            until(|| fixture.listeners.is_cancelled()).await;
            assert!(ending.is_draining());
            fixture.pods(&[pod.address]);
        };
        tokio::join!(drain, pods).0
    };
    idle.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let (answer, left) = tokio::join!(request, end);
    assert!(answer.ends_with("hello"), "{answer}");
    assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
    // A client that has not completed its request is disconnected.
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_request_held_at_shutdown_is_refused_without_a_pod() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let mut client = fixture.connect().await;
    client.write_all(GET).await.unwrap();
    fixture.wait_until_held(1).await;
    let ending = DrainState::default();
    let end = drain(&fixture.resolver, &ending, &fixture.listeners, timeouts(20));
    let (left, answer) = tokio::join!(end, read_until(&mut client, "ResolverEnding"));
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    assert_eq!((left, fixture.held()), (0, 0));
}

#[tokio::test]
async fn a_request_that_arrives_as_the_shutdown_begins_is_answered() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    let mut clients = Vec::new();
    for _ in 0..64 {
        clients.push(fixture.connect().await);
    }
    until(|| fixture.resolver.tasks.len() >= 64).await;
    for client in &mut clients {
        client.write_all(GET).await.unwrap();
    }
    fixture.resolver.shutdown.cancel();
    for client in &mut clients {
        read_until(client, "hello").await;
    }
}
