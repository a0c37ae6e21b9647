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
    pod::{Body, Pod},
    scene::Scene,
};

async fn client(scene: &Scene) -> SendRequest<Body> {
    let stream = TokioIo::new(scene.connect().await);
    let (sender, connection) = handshake(TokioExecutor::new(), stream).await.unwrap();
    scene.tasks.spawn(async move {
        let _ = connection.await;
    });
    sender
}

fn none() -> Body {
    BoxBody::new(Empty::new().map_err(|never| match never {}))
}

#[tokio::test]
async fn many_requests_are_held_over_one_connection_and_trailers_come_through() {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    let sender = client(&scene).await;
    let asked = (0..50).map(|_| {
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
        scene.holds(50).await;
        scene.pods(&[pod.address]);
    };
    tokio::join!(join_all(asked), wake);
    assert_eq!(pod.requests.load(Ordering::SeqCst), 50);
    assert_eq!(pod.connections.load(Ordering::SeqCst), 1);
    assert_eq!(scene.woken(), 1);
}

#[tokio::test]
async fn both_sides_may_speak_at_once() {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    scene.pods(&[pod.address]);
    let mut sender = client(&scene).await;
    let (say, said) = mpsc::channel::<&'static str>(4);
    let said = stream::unfold(said, |mut said| async move {
        let word = said.recv().await?;
        Some((Ok(Frame::data(Bytes::from_static(word.as_bytes()))), said))
    });
    let body = BoxBody::new(StreamBody::new(said));
    let request = Request::post("http://shop.example.com/echo")
        .body(body)
        .unwrap();
    let mut response = sender.send_request(request).await.unwrap();
    for word in ["ping", "pong", "bye!"] {
        say.send(word).await.unwrap();
        let frame = response.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), word);
    }
    drop(say);
    // The end may come with a frame that has nothing in it.
    let mut rest = 0;
    while let Some(frame) = response.body_mut().frame().await {
        rest += frame.unwrap().into_data().unwrap().len();
    }
    assert_eq!(rest, 0);
}

#[tokio::test]
async fn a_request_that_is_given_up_is_held_no_longer() {
    let scene = Scene::new("HTTP", &json!({}));
    let mut sender = client(&scene).await;
    let request = Request::get("http://shop.example.com/")
        .body(none())
        .unwrap();
    let asked = sender.send_request(request);
    tokio::select! {
        _ = asked => panic!("nobody is there to answer"),
        () = scene.holds(1) => {}
    }
    scene.holds(0).await;
}
