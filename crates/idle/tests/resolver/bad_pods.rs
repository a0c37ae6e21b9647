//! Misbehaving pods, failed wakes and removed services.

use std::net::SocketAddr;

use neap_idle::resolver::workers::WorkerThreads;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::{
    fixture::{ResolverFixture, TEST_TIMEOUT, read_until},
    pod::Pod,
};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_AND_CLOSE: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const POST_AND_CLOSE: &[u8] =
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
const CHUNKS_AND_CLOSE: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\
    Connection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

fn body(answer: &str) -> Value {
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str(body).unwrap()
}

/// A pod that reads a request, sends `answer`, and then closes or hangs.
async fn pod(fixture: &ResolverFixture, answer: &'static [u8], hangs: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    fixture.tasks.spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer).await;
            if hangs {
                open.push(stream);
            }
        }
    });
    address
}

#[tokio::test]
async fn a_pod_that_accepts_a_request_and_hangs_causes_504_at_the_deadline() {
    let fixture = ResolverFixture::new("HTTP", &json!({"deadlineSeconds": 1}));
    fixture.pods(&[pod(&fixture, b"", true).await]);
    for request in [GET_AND_CLOSE, POST_AND_CLOSE, CHUNKS_AND_CLOSE] {
        let answer = fixture.exchange(request).await;
        assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
        let body = body(&answer);
        assert_eq!(body["reason"], "DeadlineExceeded");
        // Names the longest part.
        let error = body["error"].as_str().unwrap();
        assert!(
            error.contains("waiting for the first byte of a pod"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_truncated_answer_is_truncated_for_the_client() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let short = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this";
    fixture.pods(&[pod(&fixture, short, false).await]);
    let answer = fixture.exchange(GET).await;
    assert!(answer.contains("content-length: 100\r\n"), "{answer}");
    assert!(!answer.contains("HTTP/1.1 502"), "{answer}");

    let chunks = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nonly\r\n";
    fixture.pods(&[pod(&fixture, chunks, false).await]);
    let answer = fixture.exchange(GET).await;
    assert!(
        answer.contains("transfer-encoding: chunked\r\n"),
        "{answer}"
    );
    // The last chunk would declare the answer complete.
    assert!(!answer.contains("\r\n0\r\n"), "{answer}");
}

#[tokio::test]
async fn a_pod_that_accepts_a_request_and_dies_does_not_get_it_again() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    fixture.pods(&[pod(&fixture, b"", false).await]);
    let answer = fixture.exchange(GET_AND_CLOSE).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(body(&answer)["reason"], "PodBrokeOff");
    let counted = "idle_refused_total{protocol=\"http\",reason=\"PodBrokeOff\"} 1";
    assert!(fixture.telemetry.text().contains(counted));
}

#[tokio::test]
async fn bytes_of_a_pod_that_are_not_http_are_not_forwarded() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    fixture.pods(&[pod(&fixture, b"SSH-2.0-OpenSSH_9.2\r\n", false).await]);
    let answer = fixture.exchange(GET_AND_CLOSE).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(!answer.contains("SSH"), "{answer}");
}

#[tokio::test]
async fn a_failed_wake_is_reported_at_the_deadline() {
    let fixture = ResolverFixture::new("HTTP", &json!({"deadlineSeconds": 1}));
    fixture.wakes.fail("deployments.apps \"cart\" not found");
    let answer = fixture.exchange(GET_AND_CLOSE).await;
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    let body = body(&answer);
    let told = body["wakeFailed"].as_str().unwrap();
    assert!(told.contains("the resolver's log has the cause"), "{told}");
    assert!(fixture.wake_requests() > 1, "it was asked once only");
    let counted = "idle_wakes_asked_total{result=\"failed\"}";
    assert!(fixture.telemetry.text().contains(counted));
}

#[tokio::test]
async fn a_client_of_a_service_that_is_gone_is_told_to_connect_anew() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    let mut client = fixture.connect().await;
    client.write_all(GET).await.unwrap();
    read_until(&mut client, "hello").await;
    fixture.remove_service();
    client.write_all(GET).await.unwrap();
    let answer = read_until(&mut client, "ServiceGone").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    let mut rest = Vec::new();
    let read = tokio::time::timeout(TEST_TIMEOUT, client.read_to_end(&mut rest));
    read.await.expect("never closed").unwrap();
}

#[tokio::test]
async fn a_request_held_for_a_removed_service_gets_503() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let gone = async {
        fixture.wait_until_held(1).await;
        fixture.remove_service();
    };
    let (answer, ()) = tokio::join!(fixture.exchange(GET_AND_CLOSE), gone);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(body(&answer)["reason"], "ServiceGone");
}

#[test]
fn a_resolver_that_dies_closes_held_connections_and_has_sent_nothing() {
    use std::io::{Read, Write};
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let pod = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut fixture, mut client) = runtime.block_on(async {
        let fixture = ResolverFixture::new("HTTP", &json!({}));
        let mut client = std::net::TcpStream::connect(fixture.address).unwrap();
        client.write_all(GET).unwrap();
        fixture.wait_until_held(1).await;
        (fixture, client)
    });
    assert_eq!(fixture.wake_requests(), 1);
    runtime.shutdown_timeout(TEST_TIMEOUT);
    fixture.threads = WorkerThreads::default();
    let mut answer = Vec::new();
    // A close or a reset: neither is an answer.
    let _ = client.read_to_end(&mut answer);
    assert!(answer.is_empty());
    // A pod that becomes ready later gets nothing: the client has to retry.
    fixture.pods(&[pod.local_addr().unwrap()]);
    pod.set_nonblocking(true).unwrap();
    let taken = pod.accept().map(drop).unwrap_err();
    assert_eq!(taken.kind(), std::io::ErrorKind::WouldBlock);
}
