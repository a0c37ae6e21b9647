//! The deadline is for getting to a pod and for its answer to begin. What has begun lasts as long as
//! client and pod like.

use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::{Request, StatusCode};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_tungstenite::{accept_async, client_async, tungstenite::Message};

use crate::{
    pod::Pod,
    scene::{STUCK, Scene, read_until, until},
};

/// Time passes for everybody here, at once.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

fn scene(protocol: &str) -> Scene {
    Scene::on_one_clock(protocol, &json!({"deadlineSeconds": 2}))
}

/// Longer than the deadline, and all in all shorter than after what a quiet peer is asked whether it
/// lives.
const LONG: Duration = Duration::from_secs(5);

#[tokio::test]
async fn an_answer_that_has_begun_is_not_cut() {
    let scene = scene("HTTP");
    let pod = Pod::new(&scene.tasks).await;
    scene.pods(&[pod.address]);
    let mut client = scene.connect().await;
    let ask = b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n";
    client.write_all(ask).await.unwrap();
    for event in ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"] {
        pod.events.send(event).await.unwrap();
        read_until(&mut client, event).await;
        pass(LONG).await;
    }
}

#[tokio::test]
async fn an_answer_that_does_not_begin_in_time_is_not_waited_for() {
    let scene = scene("HTTP");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    scene.pods(&[listener.local_addr().unwrap()]);
    let mut client = scene.connect().await;
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    let (mut pod, _) = listener.accept().await.unwrap();
    read_until(&mut pod, "\r\n\r\n").await;
    pass(LONG).await;
    read_until(&mut client, "HTTP/1.1 504 ").await;
}

#[tokio::test]
async fn who_sends_for_long_keeps_nobody_from_going_to_the_pod() {
    let limits = json!({"queue": {"perPod": 1}});
    let scene = Scene::on_one_clock("HTTP", &limits);
    let mut slow = scene.connect().await;
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nword";
    slow.write_all(head).await.unwrap();
    scene.holds(1).await;
    let mut next = scene.connect().await;
    let ask = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    next.write_all(ask).await.unwrap();
    scene.holds(2).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    scene.pods(&[listener.local_addr().unwrap()]);
    let (mut first, _) = listener.accept().await.unwrap();
    read_until(&mut first, "word").await;
    assert_eq!(scene.held(), 1);
    pass(LONG + Duration::from_secs(1)).await;
    let (mut second, _) = listener.accept().await.unwrap();
    read_until(&mut second, "\r\n\r\n").await;
    assert_eq!(scene.held(), 0);
}

#[tokio::test]
async fn a_client_that_sends_for_long_is_answered_at_the_end() {
    let scene = scene("HTTP");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    scene.pods(&[listener.local_addr().unwrap()]);
    let mut client = scene.connect().await;
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nword";
    client.write_all(head).await.unwrap();
    let (mut pod, _) = listener.accept().await.unwrap();
    read_until(&mut pod, "word").await;
    pass(LONG).await;
    client.write_all(b"more").await.unwrap();
    read_until(&mut pod, "more").await;
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    pod.write_all(answer).await.unwrap();
    let answered = read_until(&mut client, "\r\n\r\nok").await;
    assert!(answered.starts_with("HTTP/1.1 200 OK\r\n"), "{answered}");
}

/// A pod that answers when it was sent everything, with how much that was.
async fn patient(scene: &Scene) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    scene.tasks.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(stream).await.unwrap();
        let (request, mut answer) = connection.accept().await.unwrap().unwrap();
        let answering = async move {
            let mut body = request.into_body();
            let mut count = 0;
            while let Some(Ok(data)) = body.data().await {
                count += data.len();
                let _ = body.flow_control().release_capacity(data.len());
            }
            let head = http::Response::builder().header("count", count);
            let head = head.body(()).unwrap();
            answer.send_response(head, true).unwrap();
        };
        tokio::join!(answering, async {
            while connection.accept().await.is_some() {}
        });
    });
    address
}

#[tokio::test]
async fn a_stream_that_a_client_holds_open_is_not_cut() {
    let scene = scene("HTTP");
    scene.pods(&[patient(&scene).await]);
    let stream = scene.connect().await;
    let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
    scene.tasks.spawn(async move {
        let _ = connection.await;
    });
    let request = Request::post("http://shop.example.com/").body(()).unwrap();
    let (answer, mut body) = sender.send_request(request, false).unwrap();
    for _ in 0..3 {
        let part = Bytes::from_static(b"part");
        body.send_data(part, false).unwrap();
        until(|| {
            scene.held() == 0
                && scene
                    .resolver
                    .activity
                    .all()
                    .values()
                    .any(|it| it.open == 1)
        })
        .await;
        pass(LONG).await;
    }
    body.send_data(Bytes::new(), true).unwrap();
    let answer = tokio::time::timeout(STUCK, answer)
        .await
        .expect("no answer");
    let answer = answer.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["count"], "12");
}

#[tokio::test]
async fn a_web_socket_is_not_cut() {
    let scene = scene("HTTP");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    scene.pods(&[listener.local_addr().unwrap()]);
    scene.tasks.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() {
                socket.send(message).await.unwrap();
            }
        }
    });
    let stream = scene.connect().await;
    let client = client_async("ws://shop.example.com/chat", stream).await;
    let (mut client, _) = client.unwrap();
    for word in ["one", "two", "three"] {
        pass(LONG).await;
        client.send(Message::text(word)).await.unwrap();
        let said = tokio::time::timeout(STUCK, client.next()).await;
        let said = said.expect("no answer").unwrap().unwrap();
        assert_eq!(said, Message::text(word));
    }
}

#[tokio::test]
async fn a_raw_connection_is_not_cut() {
    let scene = scene("TCP");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    scene.pods(&[listener.local_addr().unwrap()]);
    let mut client = scene.connect().await;
    let (mut pod, _) = listener.accept().await.unwrap();
    for _ in 0..3 {
        pass(LONG).await;
        client.write_all(b"ask").await.unwrap();
        let mut asked = [0; 3];
        pod.read_exact(&mut asked).await.unwrap();
        pass(LONG).await;
        pod.write_all(b"say").await.unwrap();
        let mut said = [0; 3];
        let read = tokio::time::timeout(STUCK, client.read_exact(&mut said)).await;
        read.expect("no answer").unwrap();
    }
}
