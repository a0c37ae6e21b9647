//! A request that a pod has not processed goes to another pod; one that it may have processed does not.

use std::{
    io::Write,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited, combinators::BoxBody};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use crate::{
    fixture::{ResolverFixture, TEST_TIMEOUT, read_until, until},
    pod::{Body, Pod},
};

async fn client(fixture: &ResolverFixture) -> SendRequest<Body> {
    let stream = TokioIo::new(fixture.connect().await);
    let (sender, connection) = handshake(TokioExecutor::new(), stream).await.unwrap();
    fixture.tasks.spawn(async move {
        let _ = connection.await;
    });
    sender
}

async fn echoed(sender: &mut SendRequest<Body>, text: &'static str) -> (StatusCode, String) {
    let body = Full::new(Bytes::from_static(text.as_bytes()));
    let body = BoxBody::new(body.map_err(|never| match never {}));
    let request = Request::post("http://shop.example.com/echo")
        .body(body)
        .unwrap();
    let answer = tokio::time::timeout(TEST_TIMEOUT, sender.send_request(request)).await;
    let answer = answer.expect("no answer").unwrap();
    let status = answer.status();
    #[expect(clippy::disallowed_methods, reason = "the body is limited")]
    let body = Limited::new(answer.into_body(), 1 << 20).collect().await;
    let body = body.unwrap().to_bytes().to_vec();
    (status, String::from_utf8(body).unwrap())
}

/// A pod that refuses every HTTP/2 request, and counts them.
async fn refusing(fixture: &ResolverFixture) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let refused = Arc::<AtomicUsize>::default();
    let (count, tasks) = (refused.clone(), fixture.tasks.clone());
    fixture.tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let count = count.clone();
            tasks.spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((_, mut answer))) = connection.accept().await {
                    count.fetch_add(1, Ordering::SeqCst);
                    answer.send_reset(h2::Reason::REFUSED_STREAM);
                }
            });
        }
    });
    (address, refused)
}

#[tokio::test]
async fn a_request_that_a_pod_refuses_goes_to_another_with_all_of_its_body() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let (address, refused) = refusing(&fixture).await;
    let pod = Pod::new(&fixture.tasks).await;
    let mut sender = client(&fixture).await;
    fixture.pods(&[address]);
    let wake = async {
        until(|| refused.load(Ordering::SeqCst) >= 2).await;
        fixture.pods(&[address, pod.address]);
    };
    let (answer, ()) = tokio::join!(echoed(&mut sender, "all of it"), wake);
    assert_eq!(answer, (StatusCode::OK, "all of it".to_owned()));
    assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
    let text = fixture.telemetry.text();
    assert!(text.contains("neaptide_idle_sent_elsewhere_total{protocol=\"http\"} "));
}

#[tokio::test]
async fn a_pod_that_refuses_all_requests_is_given_up_at_the_deadline() {
    let fixture = ResolverFixture::new("HTTP", &json!({"deadlineSeconds": 1}));
    let (address, _) = refusing(&fixture).await;
    fixture.pods(&[address]);
    let mut sender = client(&fixture).await;
    let (status, body) = echoed(&mut sender, "word").await;
    assert_eq!(status, StatusCode::GATEWAY_TIMEOUT, "{body}");
}

/// Reads HTTP/2 frames until the head of a request; returns its stream.
async fn head_of_request(stream: &mut TcpStream) -> u32 {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.unwrap();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await.unwrap();
        if head[3] == 1 {
            return u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        }
    }
}

/// An empty SETTINGS frame.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
/// The last stream of a GOAWAY that announces a shutdown.
const ANY: u32 = (1 << 31) - 1;

/// A GOAWAY frame: no request after stream `last` is processed.
fn go_away(last: u32, reason: h2::Reason) -> Vec<u8> {
    let mut frame = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
    frame.extend(last.to_be_bytes());
    frame.extend(u32::from(reason).to_be_bytes());
    frame
}

/// The frames that a pod sends in response to a request before it closes.
type Goodbye = fn(u32) -> Vec<u8>;

/// A pod that sends GOAWAY on its first connection when a request arrives, and serves later ones.
async fn leaving(fixture: &ResolverFixture, goodbye: Goodbye) -> Pod {
    let own = Pod::new(&fixture.tasks).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut pod = own.clone();
    pod.address = listener.local_addr().unwrap();
    let tasks = fixture.tasks.clone();
    fixture.tasks.spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        let request = head_of_request(&mut first).await;
        first.write_all(&SETTINGS).await.unwrap();
        first.write_all(&goodbye(request)).await.unwrap();
        first.shutdown().await.unwrap();
        // Unread bytes would turn the close into a reset, and the GOAWAY could be lost.
        let mut rest = Vec::new();
        let _ = first.read_to_end(&mut rest).await;
        while let Ok((stream, _)) = listener.accept().await {
            let own = own.clone();
            tasks.spawn(async move { own.serve_accepted(stream).await });
        }
    });
    pod
}

#[tokio::test]
async fn a_request_that_crosses_with_go_away_uses_a_new_connection() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    // An immediate close, a graceful shutdown, and an error.
    let goodbyes: [Goodbye; 3] = [
        |request| go_away(request - 1, h2::Reason::NO_ERROR),
        |request| {
            let last = go_away(request - 1, h2::Reason::NO_ERROR);
            [go_away(ANY, h2::Reason::NO_ERROR), last].concat()
        },
        |request| go_away(request - 1, h2::Reason::ENHANCE_YOUR_CALM),
    ];
    for goodbye in goodbyes {
        let pod = leaving(&fixture, goodbye).await;
        fixture.pods(&[pod.address]);
        let mut sender = client(&fixture).await;
        let answer = echoed(&mut sender, "still there").await;
        assert_eq!(answer, (StatusCode::OK, "still there".to_owned()));
        assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn a_request_that_may_have_been_processed_before_go_away_is_not_sent_again() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    // An announcement alone does not exclude any request that was sent.
    let goodbyes: [Goodbye; 4] = [
        |request| go_away(request, h2::Reason::NO_ERROR),
        |_| go_away(ANY, h2::Reason::NO_ERROR),
        |request| {
            let last = go_away(request, h2::Reason::NO_ERROR);
            [go_away(ANY, h2::Reason::NO_ERROR), last].concat()
        },
        |request| go_away(request, h2::Reason::INTERNAL_ERROR),
    ];
    for goodbye in goodbyes {
        let pod = leaving(&fixture, goodbye).await;
        fixture.pods(&[pod.address]);
        let mut sender = client(&fixture).await;
        let (status, body) = echoed(&mut sender, "once").await;
        assert_eq!(status, StatusCode::BAD_GATEWAY, "{body}");
        assert!(body.contains("PodBrokeOff"), "{body}");
        assert_eq!(pod.requests.load(Ordering::SeqCst), 0);
    }
}

/// A pod that begins a graceful shutdown when the first request arrives, answers that request on a signal,
/// and serves later connections.
async fn draining(fixture: &ResolverFixture) -> (Pod, oneshot::Receiver<()>, oneshot::Sender<()>) {
    let own = Pod::new(&fixture.tasks).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut pod = own.clone();
    pod.address = listener.local_addr().unwrap();
    let (begin, begun) = oneshot::channel();
    let (signal, signalled) = oneshot::channel();
    let tasks = fixture.tasks.clone();
    fixture.tasks.spawn(async move {
        let (first, _) = listener.accept().await.unwrap();
        tasks.spawn(async move {
            let mut connection = h2::server::handshake(first).await.unwrap();
            let (_, mut answer) = connection.accept().await.unwrap().unwrap();
            connection.graceful_shutdown();
            begin.send(()).unwrap();
            let answering = async move {
                signalled.await.unwrap();
                let head = http::Response::new(());
                let mut body = answer.send_response(head, false).unwrap();
                let last = Bytes::from_static(b"the last");
                body.send_data(last, true).unwrap();
            };
            let rest = async { while connection.accept().await.is_some() {} };
            tokio::join!(answering, rest);
        });
        while let Ok((stream, _)) = listener.accept().await {
            let own = own.clone();
            tasks.spawn(async move { own.serve_accepted(stream).await });
        }
    });
    (pod, begun, signal)
}

#[tokio::test]
async fn requests_before_and_during_a_graceful_shutdown_of_a_pod_are_served() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let (pod, begun, signal) = draining(&fixture).await;
    fixture.pods(&[pod.address]);
    let (mut first, mut others) = (client(&fixture).await, client(&fixture).await);
    let first = fixture
        .tasks
        .spawn(async move { echoed(&mut first, "first").await });
    tokio::time::timeout(TEST_TIMEOUT, begun)
        .await
        .unwrap()
        .unwrap();
    // Some of them cross with the GOAWAY, and all others come after it.
    for _ in 0..100 {
        let answer = echoed(&mut others, "another").await;
        assert_eq!(answer, (StatusCode::OK, "another".to_owned()));
    }
    signal.send(()).unwrap();
    let answer = first.await.unwrap();
    assert_eq!(answer, (StatusCode::OK, "the last".to_owned()));
    assert_eq!(pod.requests.load(Ordering::SeqCst), 100);
}

/// A pod that reads a whole request and only then refuses it; with the bytes and requests that it read.
async fn taking(fixture: &ResolverFixture) -> (SocketAddr, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sent, taken) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (tasks, counts) = (fixture.tasks.clone(), (sent.clone(), taken.clone()));
    fixture.tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            let (inner, counts) = (tasks.clone(), counts.clone());
            tasks.spawn(async move {
                while let Some(Ok((request, mut answer))) = connection.accept().await {
                    let (bytes, count) = counts.clone();
                    inner.spawn(async move {
                        let mut body = request.into_body();
                        while let Some(Ok(data)) = body.data().await {
                            bytes.fetch_add(data.len(), Ordering::SeqCst);
                            let _ = body.flow_control().release_capacity(data.len());
                        }
                        count.fetch_add(1, Ordering::SeqCst);
                        answer.send_reset(h2::Reason::REFUSED_STREAM);
                    });
                }
            });
        }
    });
    (address, sent, taken)
}

/// The status of a request whose body a pod reads in these parts and then refuses, and the number of
/// requests that another pod gets.
async fn refused_in_parts(parts: usize, length: usize) -> (StatusCode, usize) {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    let (address, sent, taken) = taking(&fixture).await;
    fixture.pods(&[address]);
    let stream = fixture.connect().await;
    let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
    fixture.tasks.spawn(async move {
        let _ = connection.await;
    });
    let request = Request::post("http://shop.example.com/echo").body(());
    let (answer, mut body) = sender.send_request(request.unwrap(), false).unwrap();
    for part in 1..=parts {
        let data = Bytes::from(vec![b'x'; length]);
        body.send_data(data, part == parts).unwrap();
        // One at a time: the server rejects a flood of small frames.
        until(|| sent.load(Ordering::SeqCst) >= part * length).await;
    }
    let other = async {
        until(|| taken.load(Ordering::SeqCst) > 0).await;
        fixture.pods(&[pod.address]);
    };
    let (answer, ()) = tokio::join!(tokio::time::timeout(TEST_TIMEOUT, answer), other);
    let status = answer.expect("no answer").unwrap().status();
    (status, pod.requests.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_small_body_is_sent_again_to_another_pod() {
    assert_eq!(refused_in_parts(1, 1_000).await, (StatusCode::OK, 1));
}

#[tokio::test]
async fn a_large_body_is_not_sent_again() {
    assert_eq!(
        refused_in_parts(1, 20_000).await,
        (StatusCode::BAD_GATEWAY, 0)
    );
}

#[tokio::test]
async fn a_body_of_many_small_frames_is_not_sent_again() {
    assert_eq!(refused_in_parts(300, 1).await, (StatusCode::BAD_GATEWAY, 0));
}

#[tokio::test]
async fn a_connection_that_a_pod_closed_between_requests_loses_no_request() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    fixture.pods(&[address]);
    let client = std::net::TcpStream::connect(fixture.address).unwrap();
    client.set_nonblocking(true).unwrap();
    let mut asking = client.try_clone().unwrap();
    let mut client = TcpStream::from_std(client).unwrap();
    let ask = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nword";
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    asking.write_all(ask).unwrap();
    for _ in 0..200 {
        let (mut pod, _) = listener.accept().await.unwrap();
        let mut request = String::new();
        while !request.ends_with("word") {
            let mut buffer = [0; 1024];
            let count = pod.read(&mut buffer).await.unwrap();
            assert_ne!(count, 0, "{request}");
            request.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        pod.write_all(answer).await.unwrap();
        let answered = read_until(&mut client, "\r\n\r\nok").await;
        assert!(answered.starts_with("HTTP/1.1 200 OK\r\n"), "{answered}");
        // Both happen before the resolver is notified of either.
        drop(pod.into_std().unwrap());
        asking.write_all(ask).unwrap();
    }
}
