use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    fixture::{ResolverFixture, TEST_TIMEOUT},
    pod::Pod,
};

#[tokio::test]
async fn ambiguous_requests_reach_no_pod() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    let long = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "a".repeat(70_000)
    );
    let many = format!(
        "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
        "X: a\r\n".repeat(200)
    );
    for (status, bytes) in [
        (400, "GET / HTTP/1.1\nHost: a\n\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"),
        (
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        ),
        (
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        ),
        (
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        ),
        (400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
        (400, "no request at all\r\n\r\n"),
        (431, &long),
        (431, &many),
    ] {
        let answer = fixture.exchange(bytes.as_bytes()).await;
        let shown = &bytes[..bytes.len().min(80)];
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{shown:?}: {answer:?}"
        );
    }
    assert_eq!(pod.requests.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(fixture.wake_requests(), 0);
}

#[tokio::test]
async fn an_endless_head_is_cut_off() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    for (begun, more) in [
        ("GET / HTTP/1.1\r\nHost: a\r\nX: ", "a".repeat(1000)),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "X: a\r\n".repeat(200)),
        ("GET /", "a".repeat(1000)),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            "X: a\r\n".repeat(200),
        ),
    ] {
        let mut client = fixture.connect().await;
        client.write_all(begun.as_bytes()).await.unwrap();
        let endless = async { while client.write_all(more.as_bytes()).await.is_ok() {} };
        tokio::time::timeout(TEST_TIMEOUT, endless)
            .await
            .expect("never cut off");
    }
    // The last one was held until its trailers were too long.
    fixture.wait_until_held(0).await;
}

#[tokio::test]
async fn the_head_of_an_http_2_request_is_limited() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    let stream = TokioIo::new(fixture.connect().await);
    let (mut sender, connection) = handshake(TokioExecutor::new(), stream).await.unwrap();
    fixture.tasks.spawn(async move {
        let _ = connection.await;
    });
    for (length, status) in [(1000, Some(200)), (10_000, Some(200)), (70_000, None)] {
        let request = Request::get("http://shop.example.com/")
            .header("x-long", "a".repeat(length))
            .body(Empty::<Bytes>::new())
            .unwrap();
        let answer = sender.send_request(request).await;
        let answered = answer.ok().map(|answer| answer.status().as_u16());
        assert!(
            answered == status || answered == Some(431),
            "{length}: {answered:?}"
        );
    }
    assert_eq!(pod.requests.load(std::sync::atomic::Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_chunk_that_is_longer_than_declared_closes_the_connection() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    let mut client = fixture.connect().await;
    let head = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let smuggled = "3\r\nabcGET /other HTTP/1.1\r\nHost: a\r\n\r\n0\r\n\r\n";
    client
        .write_all(format!("{head}{smuggled}").as_bytes())
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(
        !answer.contains("HTTP/1.1 200 OK\r\n") || !answer.contains("0\r\n\r\n"),
        "{answer}"
    );
    assert!(pod.requests.load(std::sync::atomic::Ordering::SeqCst) <= 1);
}

#[tokio::test]
async fn clients_that_take_too_long_to_send_a_request_are_disconnected() {
    let timeout = Duration::from_millis(100);
    let fixture = ResolverFixture::with_client_timeout("HTTP", timeout);
    for begun in [
        "",
        "P",
        "PRI * HTTP/2",
        "G",
        "GET / HTTP/1.1\r\nHost: a\r\nX: ",
    ] {
        let mut client = fixture.connect().await;
        client.write_all(begun.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = tokio::time::timeout(TEST_TIMEOUT, client.read_to_end(&mut answer));
        let _ = read.await.expect("never let go");
    }
    let fixture = ResolverFixture::with_client_timeout("TLS", timeout);
    assert_eq!(fixture.exchange(b"").await, "");
    assert_eq!(fixture.wake_requests(), 0);
}

#[tokio::test]
async fn single_bytes_do_not_keep_a_connection_open() {
    let fixture = ResolverFixture::with_client_timeout("HTTP", Duration::from_millis(200));
    let mut client = fixture.connect().await;
    client.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
    let drip = async {
        while client.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, drip)
        .await
        .expect("never let go");
    assert_eq!(fixture.wake_requests(), 0);
}
