use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    pod::Pod,
    scene::{STUCK, Scene},
};

#[tokio::test]
async fn what_can_be_read_in_two_ways_reaches_nobody() {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    scene.pods(&[pod.address]);
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
        let answer = scene.say(bytes.as_bytes()).await;
        let shown = &bytes[..bytes.len().min(80)];
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{shown:?}: {answer:?}"
        );
    }
    assert_eq!(pod.requests.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(scene.woken(), 0);
}

#[tokio::test]
async fn a_head_without_end_is_cut_off() {
    let scene = Scene::new("HTTP", &json!({}));
    for (begun, more) in [
        ("GET / HTTP/1.1\r\nHost: a\r\nX: ", "a".repeat(1000)),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "X: a\r\n".repeat(200)),
        ("GET /", "a".repeat(1000)),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            "X: a\r\n".repeat(200),
        ),
    ] {
        let mut client = scene.connect().await;
        client.write_all(begun.as_bytes()).await.unwrap();
        let endless = async { while client.write_all(more.as_bytes()).await.is_ok() {} };
        tokio::time::timeout(STUCK, endless)
            .await
            .expect("never cut off");
    }
    // The last was held until its trailers were too long.
    scene.holds(0).await;
}

#[tokio::test]
async fn a_head_over_http_2_is_no_longer_than_others() {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    scene.pods(&[pod.address]);
    let stream = TokioIo::new(scene.connect().await);
    let (mut sender, connection) = handshake(TokioExecutor::new(), stream).await.unwrap();
    scene.tasks.spawn(async move {
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
async fn a_chunk_that_is_not_as_long_as_it_says_ends_the_connection() {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    scene.pods(&[pod.address]);
    let mut client = scene.connect().await;
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
async fn whoever_takes_too_long_to_ask_is_let_go() {
    let patience = Duration::from_millis(100);
    let scene = Scene::impatient("HTTP", patience);
    for begun in [
        "",
        "P",
        "PRI * HTTP/2",
        "G",
        "GET / HTTP/1.1\r\nHost: a\r\nX: ",
    ] {
        let mut client = scene.connect().await;
        client.write_all(begun.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = tokio::time::timeout(STUCK, client.read_to_end(&mut answer));
        let _ = read.await.expect("never let go");
    }
    let scene = Scene::impatient("TLS", patience);
    assert_eq!(scene.say(b"").await, "");
    assert_eq!(scene.woken(), 0);
}

#[tokio::test]
async fn a_drop_now_and_then_does_not_hold_a_connection_open() {
    let scene = Scene::impatient("HTTP", Duration::from_millis(200));
    let mut client = scene.connect().await;
    client.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
    let drip = async {
        while client.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(STUCK, drip)
        .await
        .expect("never let go");
    assert_eq!(scene.woken(), 0);
}
