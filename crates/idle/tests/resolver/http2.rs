use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::{future::join_all, stream};
use http::{Request, Version};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, StreamBody, combinators::BoxBody};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::sync::mpsc;

use crate::{
    fixture::ResolverFixture,
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

fn none() -> Body {
    BoxBody::new(Empty::new().map_err(|never| match never {}))
}

#[tokio::test]
async fn many_requests_are_held_over_one_connection_and_trailers_are_forwarded() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    let sender = client(&fixture).await;
    let request = (0..50).map(|_| {
        let mut sender = sender.clone();
        async move {
            let request = Request::get("http://shop.example.com/trailers")
                .body(none())
                .unwrap();
            let mut response = sender.send_request(request).await.unwrap();
            assert_eq!(response.version(), Version::HTTP_2);
            let mut seen = Vec::new();
            while let Some(frame) = response.body_mut().frame().await {
                match frame.unwrap().into_data() {
                    Ok(data) => seen.extend_from_slice(&data),
                    Err(frame) => seen.extend_from_slice(
                        frame.into_trailers().unwrap()["grpc-status"].as_bytes(),
                    ),
                }
            }
            assert_eq!(seen, b"hello0");
        }
    });
    let wake = async {
        fixture.wait_until_held(50).await;
        fixture.pods(&[pod.address]);
    };
    tokio::join!(join_all(request), wake);
    assert_eq!(pod.requests.load(Ordering::SeqCst), 50);
    assert_eq!(pod.connections.load(Ordering::SeqCst), 1);
    assert_eq!(fixture.wake_requests(), 1);
}

#[tokio::test]
async fn both_sides_may_send_at_once() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    let mut sender = client(&fixture).await;
    let (send, words) = mpsc::channel::<&'static str>(4);
    let frames = stream::unfold(words, |mut words| async move {
        let word = words.recv().await?;
        Some((Ok(Frame::data(Bytes::from_static(word.as_bytes()))), words))
    });
    let body = BoxBody::new(StreamBody::new(frames));
    let request = Request::post("http://shop.example.com/echo")
        .body(body)
        .unwrap();
    let mut response = sender.send_request(request).await.unwrap();
    for word in ["ping", "pong", "bye!"] {
        send.send(word).await.unwrap();
        let frame = response.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), word);
    }
    drop(send);
    // The end may come with an empty frame.
    let mut rest = 0;
    while let Some(frame) = response.body_mut().frame().await {
        rest += frame.unwrap().into_data().unwrap().len();
    }
    assert_eq!(rest, 0);
}

#[tokio::test]
async fn a_cancelled_request_is_no_longer_held() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let mut sender = client(&fixture).await;
    let request = Request::get("http://shop.example.com/")
        .body(none())
        .unwrap();
    let response = sender.send_request(request);
    tokio::select! {
        _ = response => panic!("there is no pod to answer"),
        () = fixture.wait_until_held(1) => {}
    }
    fixture.wait_until_held(0).await;
}
