use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{pod::Pod, scene::Scene};

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
