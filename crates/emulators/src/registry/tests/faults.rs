use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use neap_kit::client::{Body, Error, Fault, Refusal};

use super::{Digest, MAX, Stage};
use crate::{fault_book::CallMatcher, network::Network, registry::Registry, system::Emulator};

#[tokio::test(start_paused = true)]
async fn a_client_that_retries_gets_through_every_passing_fault() {
    let unavailable = Refusal::of(StatusCode::SERVICE_UNAVAILABLE);
    let slow_down = Refusal {
        status: StatusCode::TOO_MANY_REQUESTS,
        retry_after: Some(3),
    };
    for fault in [
        Fault::Unreachable,
        Fault::RequestLost,
        Fault::AnswerLost,
        Fault::Refused(slow_down),
        Fault::FailedAfterwards(unavailable),
        Fault::Slow(Duration::from_secs(20)),
        Fault::Silent,
        Fault::Truncated(10),
        Fault::Twice,
    ] {
        let stage = Stage::open();
        let digest = stage.push_image("a", "v1").await;
        let gets = CallMatcher::path("/v2/*/manifests/*").method(Method::GET);
        stage.registry.faults().inject(gets.times(1), fault);
        let pulled = stage.get("/v2/a/manifests/v1").await;
        assert_eq!(Digest::of(&pulled.body), digest, "{fault}");
        assert!(stage.registry.faults().unused().is_empty(), "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn corruption_is_what_a_digest_is_for() {
    let stage = Stage::open();
    let digest = stage.push_image("a", "v1").await;
    let any = CallMatcher::any();
    stage.registry.faults().inject(any, Fault::Corrupted(20));
    let pulled = stage.get("/v2/a/manifests/v1").await;
    assert_eq!(pulled.status, 200);
    assert_ne!(Digest::of(&pulled.body), digest);
}

#[tokio::test(start_paused = true)]
async fn a_chunk_whose_connection_breaks_is_continued_where_it_broke() {
    let stage = Stage::open();
    let begun = stage.post("/v2/a/blobs/uploads/").await;
    let place = begun.header("location").unwrap();
    let parts = [Ok(Bytes::from("0123")), Err(std::io::Error::other("cable"))];
    let broken = Body::from_stream(futures::stream::iter(parts));
    let refused = stage.request(Method::PATCH, place).stream(broken);
    assert_eq!(refused.send().await.unwrap().status(), 400);
    let status = stage.get(place).await;
    assert_eq!(
        status.header("range"),
        Some("0-3"),
        "what has arrived stays"
    );
    let digest = Digest::of(b"012345");
    let rest = stage.put(&format!("{place}?digest={digest}"), "45").await;
    assert_eq!(rest.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_a_finished_upload_leaves_the_blob() {
    let stage = Stage::open();
    let begun = stage.post("/v2/a/blobs/uploads/").await;
    let place = begun.header("location").unwrap();
    let puts = CallMatcher::path("*").method(Method::PUT);
    stage
        .registry
        .faults()
        .inject(puts.times(1), Fault::AnswerLost);
    let digest = Digest::of(b"x");
    let again = stage.put(&format!("{place}?digest={digest}"), "x").await;
    assert_eq!(again.status, 404, "the upload is over");
    assert_eq!(
        stage.head(&format!("/v2/a/blobs/{digest}")).await.status,
        200
    );
}

#[tokio::test(start_paused = true)]
async fn several_systems_are_reached_by_their_hosts() {
    let (one, other) = (Stage::open(), Stage::open());
    one.push_image("a", "one").await;
    other.push_image("a", "other").await;
    let network = Network::default();
    network
        .mount("one.example.com", one.registry.transport())
        .mount("other.example.com:5000", other.registry.transport());
    let client = super::client(network.transport(), one.clock);
    for (address, tag, status) in [
        ("https://one.example.com", "one", 200),
        ("https://ONE.example.com:443", "one", 200),
        ("https://other.example.com:5000", "other", 200),
        ("https://one.example.com", "other", 404),
    ] {
        let address = format!("{address}/v2/a/manifests/{tag}");
        let answer = client.get(&address).fetch(MAX).await.unwrap();
        assert_eq!(answer.status.as_u16(), status, "{address}");
    }
    let unknown = client.get("https://other.example.com/v2/").fetch(MAX).await;
    assert!(
        matches!(unknown, Err(Error::NotReached { .. })),
        "{unknown:?}"
    );
    network.unmount("one.example.com");
    let gone = client.get("https://one.example.com/v2/").fetch(MAX).await;
    assert!(matches!(gone, Err(Error::NotReached { .. })), "{gone:?}");
}

#[tokio::test(start_paused = true)]
async fn the_log_shows_what_was_asked_and_answered() {
    let stage = Stage::open();
    stage.get("/v2/a/tags/list?n=1").await;
    let request = stage.request(Method::GET, "/v2/").basic("me", "secret");
    request.fetch(MAX).await.unwrap();
    let calls = stage.registry.calls();
    assert_eq!(
        calls.lines(),
        ["GET /v2/a/tags/list?n=1 404", "GET /v2/ 200"]
    );
    let credentials: Vec<_> = calls
        .calls()
        .iter()
        .map(|call| call.with_credentials)
        .collect();
    assert_eq!(credentials, [false, true]);
    assert!(!format!("{calls:?}").contains("secret"));
    let clone: Emulator<Registry> = stage.registry.clone();
    assert_eq!(clone.calls().count(), 2);
}
