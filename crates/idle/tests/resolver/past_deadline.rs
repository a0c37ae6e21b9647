//! The deadline applies until the answer begins. An answer that has begun may take any amount of time.

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
    fixture::{ResolverFixture, TEST_TIMEOUT, read_until, until},
    pod::Pod,
};

/// Advances the clock of client, resolver and pod.
async fn advance(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

fn fixture(protocol: &str) -> ResolverFixture {
    ResolverFixture::on_test_clock(protocol, &json!({"deadlineSeconds": 2}))
}

/// Longer than the deadline; the sum in each test is shorter than the keep-alive interval.
const PAST_DEADLINE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn an_answer_that_has_begun_is_not_cut() {
    let fixture = fixture("HTTP");
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    let mut client = fixture.connect().await;
    let ask = b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n";
    client.write_all(ask).await.unwrap();
    for event in ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"] {
        pod.events.send(event).await.unwrap();
        read_until(&mut client, event).await;
        advance(PAST_DEADLINE).await;
    }
}

#[tokio::test]
async fn an_answer_that_does_not_begin_in_time_is_given_up() {
    let fixture = fixture("HTTP");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    fixture.pods(&[listener.local_addr().unwrap()]);
    let mut client = fixture.connect().await;
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    let (mut pod, _) = listener.accept().await.unwrap();
    read_until(&mut pod, "\r\n\r\n").await;
    advance(PAST_DEADLINE).await;
    read_until(&mut client, "HTTP/1.1 504 ").await;
}

#[tokio::test]
async fn a_slow_upload_does_not_block_other_requests_to_the_pod() {
    let limits = json!({"queue": {"perPod": 1}});
    let fixture = ResolverFixture::on_test_clock("HTTP", &limits);
    let mut slow = fixture.connect().await;
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nword";
    slow.write_all(head).await.unwrap();
    fixture.wait_until_held(1).await;
    let mut next = fixture.connect().await;
    let ask = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    next.write_all(ask).await.unwrap();
    fixture.wait_until_held(2).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    fixture.pods(&[listener.local_addr().unwrap()]);
    let (mut first, _) = listener.accept().await.unwrap();
    read_until(&mut first, "word").await;
    assert_eq!(fixture.held(), 1);
    advance(PAST_DEADLINE + Duration::from_secs(1)).await;
    let (mut second, _) = listener.accept().await.unwrap();
    read_until(&mut second, "\r\n\r\n").await;
    assert_eq!(fixture.held(), 0);
}

#[tokio::test]
async fn a_slow_upload_is_answered_at_its_end() {
    let fixture = fixture("HTTP");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    fixture.pods(&[listener.local_addr().unwrap()]);
    let mut client = fixture.connect().await;
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nword";
    client.write_all(head).await.unwrap();
    let (mut pod, _) = listener.accept().await.unwrap();
    read_until(&mut pod, "word").await;
    advance(PAST_DEADLINE).await;
    client.write_all(b"more").await.unwrap();
    read_until(&mut pod, "more").await;
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    pod.write_all(answer).await.unwrap();
    let answered = read_until(&mut client, "\r\n\r\nok").await;
    assert!(answered.starts_with("HTTP/1.1 200 OK\r\n"), "{answered}");
}

/// A pod that answers after the whole body, with its size.
async fn patient(fixture: &ResolverFixture) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    fixture.tasks.spawn(async move {
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
async fn a_stream_that_a_client_keeps_open_is_not_cut() {
    let fixture = fixture("HTTP");
    fixture.pods(&[patient(&fixture).await]);
    let stream = fixture.connect().await;
    let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
    fixture.tasks.spawn(async move {
        let _ = connection.await;
    });
    let request = Request::post("http://shop.example.com/").body(()).unwrap();
    let (answer, mut body) = sender.send_request(request, false).unwrap();
    for _ in 0..3 {
        let part = Bytes::from_static(b"part");
        body.send_data(part, false).unwrap();
        until(|| {
            fixture.held() == 0
                && fixture
                    .resolver
                    .activity
                    .all()
                    .values()
                    .any(|it| it.open == 1)
        })
        .await;
        advance(PAST_DEADLINE).await;
    }
    body.send_data(Bytes::new(), true).unwrap();
    let answer = tokio::time::timeout(TEST_TIMEOUT, answer)
        .await
        .expect("no answer");
    let answer = answer.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["count"], "12");
}

#[tokio::test]
async fn a_web_socket_is_not_cut() {
    let fixture = fixture("HTTP");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    fixture.pods(&[listener.local_addr().unwrap()]);
    fixture.tasks.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() {
                socket.send(message).await.unwrap();
            }
        }
    });
    let stream = fixture.connect().await;
    let client = client_async("ws://shop.example.com/chat", stream).await;
    let (mut client, _) = client.unwrap();
    for word in ["one", "two", "three"] {
        advance(PAST_DEADLINE).await;
        client.send(Message::text(word)).await.unwrap();
        let text = tokio::time::timeout(TEST_TIMEOUT, client.next()).await;
        let text = text.expect("no answer").unwrap().unwrap();
        assert_eq!(text, Message::text(word));
    }
}

#[tokio::test]
async fn a_raw_connection_is_not_cut() {
    let fixture = fixture("TCP");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    fixture.pods(&[listener.local_addr().unwrap()]);
    let mut client = fixture.connect().await;
    let (mut pod, _) = listener.accept().await.unwrap();
    for _ in 0..3 {
        advance(PAST_DEADLINE).await;
        client.write_all(b"ask").await.unwrap();
        let mut request = [0; 3];
        pod.read_exact(&mut request).await.unwrap();
        advance(PAST_DEADLINE).await;
        pod.write_all(b"say").await.unwrap();
        let mut text = [0; 3];
        let read = tokio::time::timeout(TEST_TIMEOUT, client.read_exact(&mut text)).await;
        read.expect("no answer").unwrap();
    }
}
