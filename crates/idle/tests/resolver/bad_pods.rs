//! Pods that do not do what pods should, and wakes that come to nothing.

use std::net::SocketAddr;

use neap_idle::resolver::lanes::Threads;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::{
    pod::Pod,
    scene::{STUCK, Scene, read_until},
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

/// A pod that reads what it is asked, says `answer`, and then closes or hangs.
async fn pod(scene: &Scene, answer: &'static [u8], hangs: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    scene.tasks.spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 4096];
            let _ = stream.read(&mut asked).await;
            let _ = stream.write_all(answer).await;
            if hangs {
                open.push(stream);
            }
        }
    });
    address
}

#[tokio::test]
async fn a_pod_that_takes_a_request_and_hangs_is_waited_for_until_the_time_is_up() {
    let scene = Scene::new("HTTP", &json!({"deadlineSeconds": 1}));
    scene.pods(&[pod(&scene, b"", true).await]);
    for asked in [GET_AND_CLOSE, POST_AND_CLOSE, CHUNKS_AND_CLOSE] {
        let answer = scene.say(asked).await;
        assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
        let body = body(&answer);
        assert_eq!(body["reason"], "DeadlineExceeded");
        // Names the longest part.
        let error = body["error"].as_str().unwrap();
        assert!(error.contains("until a pod began to answer"), "{error}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_seen_to_break_off() {
    let scene = Scene::new("HTTP", &json!({}));
    let short = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this";
    scene.pods(&[pod(&scene, short, false).await]);
    let answer = scene.say(GET).await;
    assert!(answer.contains("content-length: 100\r\n"), "{answer}");
    assert!(!answer.contains("HTTP/1.1 502"), "{answer}");

    let chunks = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nonly\r\n";
    scene.pods(&[pod(&scene, chunks, false).await]);
    let answer = scene.say(GET).await;
    assert!(
        answer.contains("transfer-encoding: chunked\r\n"),
        "{answer}"
    );
    // The last chunk would say that this was all.
    assert!(!answer.contains("\r\n0\r\n"), "{answer}");
}

#[tokio::test]
async fn a_pod_that_takes_a_request_and_dies_is_not_asked_again() {
    let scene = Scene::new("HTTP", &json!({}));
    scene.pods(&[pod(&scene, b"", false).await]);
    let answer = scene.say(GET_AND_CLOSE).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(body(&answer)["reason"], "PodBrokeOff");
    let counted = "idle_refused_total{protocol=\"http\",reason=\"PodBrokeOff\"} 1";
    assert!(scene.telemetry.text().contains(counted));
}

#[tokio::test]
async fn nonsense_from_a_pod_is_not_passed_on() {
    let scene = Scene::new("HTTP", &json!({}));
    scene.pods(&[pod(&scene, b"SSH-2.0-OpenSSH_9.2\r\n", false).await]);
    let answer = scene.say(GET_AND_CLOSE).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(!answer.contains("SSH"), "{answer}");
}

#[tokio::test]
async fn a_wake_that_fails_is_told_when_the_time_is_up() {
    let scene = Scene::new("HTTP", &json!({"deadlineSeconds": 1}));
    scene.wakes.fail("deployments.apps \"cart\" not found");
    let answer = scene.say(GET_AND_CLOSE).await;
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    let body = body(&answer);
    let told = body["wakeFailed"].as_str().unwrap();
    assert!(told.contains("the resolver's log says why"), "{told}");
    assert!(scene.woken() > 1, "it was asked once only");
    let counted = "idle_wakes_asked_total{result=\"failed\"}";
    assert!(scene.telemetry.text().contains(counted));
}

#[tokio::test]
async fn a_client_of_a_service_that_is_gone_is_told_to_connect_anew() {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    scene.pods(&[pod.address]);
    let mut client = scene.connect().await;
    client.write_all(GET).await.unwrap();
    read_until(&mut client, "hello").await;
    scene.forget();
    client.write_all(GET).await.unwrap();
    let answer = read_until(&mut client, "ServiceGone").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    let mut rest = Vec::new();
    let read = tokio::time::timeout(STUCK, client.read_to_end(&mut rest));
    read.await.expect("never closed").unwrap();
}

#[tokio::test]
async fn who_is_held_for_a_service_that_goes_is_told() {
    let scene = Scene::new("HTTP", &json!({}));
    let gone = async {
        scene.holds(1).await;
        scene.forget();
    };
    let (answer, ()) = tokio::join!(scene.say(GET_AND_CLOSE), gone);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(body(&answer)["reason"], "ServiceGone");
}

#[test]
fn a_resolver_that_dies_lets_go_of_what_it_holds_and_has_sent_nothing() {
    use std::io::{Read, Write};
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let pod = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut scene, mut client) = runtime.block_on(async {
        let scene = Scene::new("HTTP", &json!({}));
        let mut client = std::net::TcpStream::connect(scene.address).unwrap();
        client.write_all(GET).unwrap();
        scene.holds(1).await;
        (scene, client)
    });
    assert_eq!(scene.woken(), 1);
    runtime.shutdown_timeout(STUCK);
    scene.threads = Threads::default();
    let mut answer = Vec::new();
    // A close, or a reset: both say that there is no answer.
    let _ = client.read_to_end(&mut answer);
    assert!(answer.is_empty());
    // The pod that comes later finds nothing: who asked asks again.
    scene.pods(&[pod.local_addr().unwrap()]);
    pod.set_nonblocking(true).unwrap();
    let taken = pod.accept().map(drop).unwrap_err();
    assert_eq!(taken.kind(), std::io::ErrorKind::WouldBlock);
}
