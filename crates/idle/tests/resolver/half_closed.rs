//! Clients that shut their side of a connection after a request, as `nc -N` and some libraries do.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    fixture::{ResolverFixture, TEST_TIMEOUT, read_until, until},
    pod::Pod,
};

/// Sends `request`, shuts the client's side, and returns all that arrives.
async fn answer_to(mut client: TcpStream, request: &[u8]) -> String {
    client.write_all(request).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(TEST_TIMEOUT, client.read_to_end(&mut answer));
    read.await.expect("no end").unwrap();
    String::from_utf8(answer).unwrap()
}

/// The answers without interim responses.
fn final_answers(answer: &str) -> String {
    answer.replace("HTTP/1.1 100 Continue\r\n\r\n", "")
}

#[tokio::test]
async fn a_client_that_has_shut_its_side_gets_its_answer() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    // More than the buffers of the connections hold.
    let long = "x".repeat(8 << 20);
    let post = format!(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{long}",
        long.len()
    );
    for (request, answers, end) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1, "hello"),
        ("GET / HTTP/1.0\r\n\r\n", 1, "hello"),
        ("GET /empty HTTP/1.1\r\nHost: a\r\n\r\n", 1, "\r\n\r\n"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            2,
            "hello",
        ),
        (&post, 1, &long),
    ] {
        let answer = answer_to(fixture.connect().await, request.as_bytes()).await;
        let answer = final_answers(&answer);
        let shown = &request[..request.len().min(60)];
        let heads = answer.matches("HTTP/1.1 20").count() + answer.matches("HTTP/1.0 20").count();
        assert_eq!(heads, answers, "{shown:?}");
        assert!(answer.ends_with(end), "{shown:?}");
    }
}

#[tokio::test]
async fn a_held_request_whose_client_has_shut_its_side_is_answered() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    let get = answer_to(
        fixture.connect().await,
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    let post = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";
    let post = answer_to(fixture.connect().await, post);
    let old = answer_to(fixture.connect().await, b"GET / HTTP/1.0\r\n\r\n");
    let wake = async {
        fixture.wait_until_held(3).await;
        // Long enough for a reset, if there was one.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(fixture.held(), 3);
        fixture.pods(&[pod.address]);
    };
    let (get, post, old, ()) = tokio::join!(get, post, old, wake);
    for (answer, body) in [(&get, "hello"), (&post, "body"), (&old, "hello")] {
        let last = final_answers(answer);
        let (_, status) = last.split_at("HTTP/1.x".len());
        assert!(status.starts_with(" 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with(body), "{answer}");
    }
    // HTTP/1.0 has no interim responses.
    assert!(!old.contains("100 Continue"), "{old}");
    assert_eq!(pod.requests.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_refusal_reaches_a_client_that_has_shut_its_side() {
    let fixture = ResolverFixture::new("HTTP", &json!({"deadlineSeconds": 1}));
    let answer = answer_to(
        fixture.connect().await,
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    )
    .await;
    let answer = final_answers(&answer);
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    assert!(answer.contains("DeadlineExceeded"), "{answer}");
}

#[tokio::test]
async fn a_stream_without_events_ends_some_time_after_its_client() {
    let fixture = ResolverFixture::on_test_clock("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    let mut client = fixture.connect().await;
    client
        .write_all(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    client.shutdown().await.unwrap();
    // Events still arrive.
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        pod.events.send(event).await.unwrap();
        read_until(&mut client, event).await;
    }
    let open = || {
        let all = fixture.resolver.activity.all();
        all.values().next().map_or(0, |activity| activity.open)
    };
    assert_eq!(open(), 1);
    tokio::time::pause();
    for _ in 0..8 {
        tokio::time::advance(Duration::from_secs(5)).await;
    }
    tokio::time::resume();
    until(|| open() == 0).await;
}
