//! What a pod surely did not take goes to another; what it may have taken does not.

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
    pod::{Body, Pod},
    scene::{STUCK, Scene, read_until, until},
};

async fn client(scene: &Scene) -> SendRequest<Body> {
    let stream = TokioIo::new(scene.connect().await);
    let (sender, connection) = handshake(TokioExecutor::new(), stream).await.unwrap();
    scene.tasks.spawn(async move {
        let _ = connection.await;
    });
    sender
}

async fn echoed(sender: &mut SendRequest<Body>, said: &'static str) -> (StatusCode, String) {
    let body = Full::new(Bytes::from_static(said.as_bytes()));
    let body = BoxBody::new(body.map_err(|never| match never {}));
    let request = Request::post("http://shop.example.com/echo")
        .body(body)
        .unwrap();
    let answer = tokio::time::timeout(STUCK, sender.send_request(request)).await;
    let answer = answer.expect("no answer").unwrap();
    let status = answer.status();
    #[expect(clippy::disallowed_methods, reason = "the body is limited")]
    let body = Limited::new(answer.into_body(), 1 << 20).collect().await;
    let body = body.unwrap().to_bytes().to_vec();
    (status, String::from_utf8(body).unwrap())
}

/// A pod that refuses every request that comes over HTTP/2, and counts them.
async fn refusing(scene: &Scene) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let refused = Arc::<AtomicUsize>::default();
    let (count, tasks) = (refused.clone(), scene.tasks.clone());
    scene.tasks.spawn(async move {
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
    let scene = Scene::new("HTTP", &json!({}));
    let (address, refused) = refusing(&scene).await;
    let pod = Pod::new(&scene.tasks).await;
    let mut sender = client(&scene).await;
    scene.pods(&[address]);
    let wake = async {
        until(|| refused.load(Ordering::SeqCst) >= 2).await;
        scene.pods(&[address, pod.address]);
    };
    let (answer, ()) = tokio::join!(echoed(&mut sender, "all of it"), wake);
    assert_eq!(answer, (StatusCode::OK, "all of it".to_owned()));
    assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
    let text = scene.telemetry.text();
    assert!(text.contains("neaptide_idle_sent_elsewhere_total{protocol=\"http\"} "));
}

#[tokio::test]
async fn a_pod_that_refuses_all_the_time_is_given_up_in_time() {
    let scene = Scene::new("HTTP", &json!({"deadlineSeconds": 1}));
    let (address, _) = refusing(&scene).await;
    scene.pods(&[address]);
    let mut sender = client(&scene).await;
    let (status, body) = echoed(&mut sender, "word").await;
    assert_eq!(status, StatusCode::GATEWAY_TIMEOUT, "{body}");
}

/// Reads frames of HTTP/2 until the head of a request is there.
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

/// Settings with nothing in them.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
/// As long as it is not known which request is the last.
const ANY: u32 = (1 << 31) - 1;

/// The word that no request after `last` is looked at.
fn go_away(last: u32, reason: h2::Reason) -> Vec<u8> {
    let mut frame = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
    frame.extend(last.to_be_bytes());
    frame.extend(u32::from(reason).to_be_bytes());
    frame
}

/// What a pod says to a request before it closes.
type Goodbye = fn(u32) -> Vec<u8>;

/// A pod that says goodbye on its first connection when a request comes, and serves on others.
async fn leaving(scene: &Scene, goodbye: Goodbye) -> Pod {
    let own = Pod::new(&scene.tasks).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut pod = own.clone();
    pod.address = listener.local_addr().unwrap();
    let tasks = scene.tasks.clone();
    scene.tasks.spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        let request = head_of_request(&mut first).await;
        first.write_all(&SETTINGS).await.unwrap();
        first.write_all(&goodbye(request)).await.unwrap();
        first.shutdown().await.unwrap();
        // What else it says is read, or it would not hear the goodbye.
        let mut rest = Vec::new();
        let _ = first.read_to_end(&mut rest).await;
        while let Ok((stream, _)) = listener.accept().await {
            let own = own.clone();
            tasks.spawn(async move { own.take(stream).await });
        }
    });
    pod
}

#[tokio::test]
async fn a_request_that_crosses_with_goodbye_goes_over_a_new_connection() {
    let scene = Scene::new("HTTP", &json!({}));
    // At once; as pods do that end in order; and for a reason.
    let goodbyes: [Goodbye; 3] = [
        |request| go_away(request - 1, h2::Reason::NO_ERROR),
        |request| {
            let last = go_away(request - 1, h2::Reason::NO_ERROR);
            [go_away(ANY, h2::Reason::NO_ERROR), last].concat()
        },
        |request| go_away(request - 1, h2::Reason::ENHANCE_YOUR_CALM),
    ];
    for goodbye in goodbyes {
        let pod = leaving(&scene, goodbye).await;
        scene.pods(&[pod.address]);
        let mut sender = client(&scene).await;
        let answer = echoed(&mut sender, "still there").await;
        assert_eq!(answer, (StatusCode::OK, "still there".to_owned()));
        assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn a_request_that_was_looked_at_before_goodbye_is_not_sent_again() {
    let scene = Scene::new("HTTP", &json!({}));
    // The last may be any that was sent, if nothing more is said of it.
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
        let pod = leaving(&scene, goodbye).await;
        scene.pods(&[pod.address]);
        let mut sender = client(&scene).await;
        let (status, body) = echoed(&mut sender, "once").await;
        assert_eq!(status, StatusCode::BAD_GATEWAY, "{body}");
        assert!(body.contains("PodBrokeOff"), "{body}");
        assert_eq!(pod.requests.load(Ordering::SeqCst), 0);
    }
}

/// A pod that begins to end in order when the first request comes, and answers that one when it is
/// told; it serves on other connections.
async fn draining(scene: &Scene) -> (Pod, oneshot::Receiver<()>, oneshot::Sender<()>) {
    let own = Pod::new(&scene.tasks).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut pod = own.clone();
    pod.address = listener.local_addr().unwrap();
    let (begin, begun) = oneshot::channel();
    let (tell, told) = oneshot::channel();
    let tasks = scene.tasks.clone();
    scene.tasks.spawn(async move {
        let (first, _) = listener.accept().await.unwrap();
        tasks.spawn(async move {
            let mut connection = h2::server::handshake(first).await.unwrap();
            let (_, mut answer) = connection.accept().await.unwrap().unwrap();
            connection.graceful_shutdown();
            begin.send(()).unwrap();
            let answering = async move {
                told.await.unwrap();
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
            tasks.spawn(async move { own.take(stream).await });
        }
    });
    (pod, begun, tell)
}

#[tokio::test]
async fn who_comes_while_a_pod_ends_in_order_is_served_and_so_is_who_was_there() {
    let scene = Scene::new("HTTP", &json!({}));
    let (pod, begun, tell) = draining(&scene).await;
    scene.pods(&[pod.address]);
    let (mut first, mut others) = (client(&scene).await, client(&scene).await);
    let first = scene
        .tasks
        .spawn(async move { echoed(&mut first, "first").await });
    tokio::time::timeout(STUCK, begun).await.unwrap().unwrap();
    // Some of them cross with the goodbye, and all others come after it.
    for _ in 0..100 {
        let answer = echoed(&mut others, "another").await;
        assert_eq!(answer, (StatusCode::OK, "another".to_owned()));
    }
    tell.send(()).unwrap();
    let answer = first.await.unwrap();
    assert_eq!(answer, (StatusCode::OK, "the last".to_owned()));
    assert_eq!(pod.requests.load(Ordering::SeqCst), 100);
}

/// A pod that takes the whole of a request, and only then says that it did not look at it; how many
/// bytes it was sent, and how many requests it took.
async fn taking(scene: &Scene) -> (SocketAddr, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sent, taken) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (tasks, counts) = (scene.tasks.clone(), (sent.clone(), taken.clone()));
    scene.tasks.spawn(async move {
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

/// What is answered to a body that a pod takes in these parts and refuses then, and how many requests
/// another pod gets.
async fn refused_in_parts(parts: usize, length: usize) -> (StatusCode, usize) {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    let (address, sent, taken) = taking(&scene).await;
    scene.pods(&[address]);
    let stream = scene.connect().await;
    let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
    scene.tasks.spawn(async move {
        let _ = connection.await;
    });
    let request = Request::post("http://shop.example.com/echo").body(());
    let (answer, mut body) = sender.send_request(request.unwrap(), false).unwrap();
    for part in 1..=parts {
        let data = Bytes::from(vec![b'x'; length]);
        body.send_data(data, part == parts).unwrap();
        // Who sends many small ones at once is told to calm down.
        until(|| sent.load(Ordering::SeqCst) >= part * length).await;
    }
    let other = async {
        until(|| taken.load(Ordering::SeqCst) > 0).await;
        scene.pods(&[pod.address]);
    };
    let (answer, ()) = tokio::join!(tokio::time::timeout(STUCK, answer), other);
    let status = answer.expect("no answer").unwrap().status();
    (status, pod.requests.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_body_that_takes_little_is_kept_for_another_pod() {
    assert_eq!(refused_in_parts(1, 1_000).await, (StatusCode::OK, 1));
}

#[tokio::test]
async fn a_body_that_takes_much_is_not_kept() {
    assert_eq!(
        refused_in_parts(1, 20_000).await,
        (StatusCode::BAD_GATEWAY, 0)
    );
}

#[tokio::test]
async fn a_body_of_parts_that_each_take_more_than_what_is_in_them_is_not_kept() {
    assert_eq!(refused_in_parts(300, 1).await, (StatusCode::BAD_GATEWAY, 0));
}

#[tokio::test]
async fn a_connection_that_a_pod_closed_between_requests_costs_nobody_a_request() {
    let scene = Scene::new("HTTP", &json!({}));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    scene.pods(&[address]);
    let client = std::net::TcpStream::connect(scene.address).unwrap();
    client.set_nonblocking(true).unwrap();
    let mut asking = client.try_clone().unwrap();
    let mut client = TcpStream::from_std(client).unwrap();
    let ask = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nword";
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    asking.write_all(ask).unwrap();
    for _ in 0..200 {
        let (mut pod, _) = listener.accept().await.unwrap();
        let mut asked = String::new();
        while !asked.ends_with("word") {
            let mut buffer = [0; 1024];
            let count = pod.read(&mut buffer).await.unwrap();
            assert_ne!(count, 0, "{asked}");
            asked.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        pod.write_all(answer).await.unwrap();
        let answered = read_until(&mut client, "\r\n\r\nok").await;
        assert!(answered.starts_with("HTTP/1.1 200 OK\r\n"), "{answered}");
        // Both happen before anybody here is told of either.
        drop(pod.into_std().unwrap());
        asking.write_all(ask).unwrap();
    }
}
