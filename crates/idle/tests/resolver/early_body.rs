//! How much of a body is read while its request is held, measured by the memory it uses.

use neap_kit::key::Key;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::{
    fixture::{ResolverFixture, read_until, until},
    pod::Pod,
};

/// The memory of a body that is read early.
const MAX_EARLY_BODY: usize = 16 << 10;
/// The head of the request, and the frame that reaches the limit.
const ALLOWANCE: usize = 2 << 10;

fn bytes(fixture: &ResolverFixture) -> usize {
    let queued = fixture
        .resolver
        .held_requests
        .queue_size(&Key::new("shop", "cart"));
    queued.bytes
}

#[tokio::test]
async fn a_body_of_single_bytes_is_counted_by_the_memory_it_uses() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    let mut client = fixture.connect().await;
    let head = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write_all(head).await.unwrap();
    // Fewer bytes than the limit, in frames that use far more memory than it.
    client
        .write_all("1\r\nx\r\n".repeat(8_000).as_bytes())
        .await
        .unwrap();
    until(|| bytes(&fixture) >= MAX_EARLY_BODY).await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let taken = bytes(&fixture);
    assert!(taken <= MAX_EARLY_BODY + ALLOWANCE, "{taken}");
    fixture.pods(&[pod.address]);
    client.write_all(b"4\r\nlast\r\n0\r\n\r\n").await.unwrap();
    let answer = read_until(&mut client, "\r\n0\r\n\r\n").await;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: String = body.split("\r\n").skip(1).step_by(2).collect();
    assert_eq!(body.len(), 8_004);
    assert!(body.ends_with("xxlast"), "nothing is lost");
    until(|| bytes(&fixture) == 0).await;
}
