//! What is read of a body while its request is held, by what it takes in memory.

use neap_kit::key::Key;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::{
    pod::Pod,
    scene::{Scene, read_until, until},
};

/// So much of a body is read early.
const EARLY: usize = 16 << 10;
/// The head of the request, and the part with which it was enough.
const MORE: usize = 2 << 10;

fn bytes(scene: &Scene) -> usize {
    let queued = scene.resolver.holds.queued(&Key::new("shop", "cart"));
    queued.bytes
}

#[tokio::test]
async fn a_body_that_comes_a_byte_at_a_time_is_counted_by_what_it_takes() {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    let mut client = scene.connect().await;
    let head = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write_all(head).await.unwrap();
    // Fewer bytes than are read early, and far more than that in parts.
    client
        .write_all("1\r\nx\r\n".repeat(8_000).as_bytes())
        .await
        .unwrap();
    until(|| bytes(&scene) >= EARLY).await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let taken = bytes(&scene);
    assert!(taken <= EARLY + MORE, "{taken}");
    scene.pods(&[pod.address]);
    client.write_all(b"4\r\nlast\r\n0\r\n\r\n").await.unwrap();
    let answer = read_until(&mut client, "\r\n0\r\n\r\n").await;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: String = body.split("\r\n").skip(1).step_by(2).collect();
    assert_eq!(body.len(), 8_004);
    assert!(body.ends_with("xxlast"), "nothing is lost");
    until(|| bytes(&scene) == 0).await;
}
