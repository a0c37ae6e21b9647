use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    pod::Pod,
    scene::{Scene, read_until, until},
};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_AND_CLOSE: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn a_request_is_held_until_a_pod_is_ready_and_says_so() {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    let answer = scene.say(GET_AND_CLOSE);
    let wake = async {
        scene.holds(1).await;
        assert_eq!(scene.woken(), 1);
        scene.pods(&[pod.address]);
    };
    let (answer, ()) = tokio::join!(answer, wake);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    assert!(
        answer.contains("x-neaptide-cold-start: queue;dur="),
        "{answer}"
    );
    assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
    let text = scene.telemetry.text();
    for counted in [
        "neaptide_idle_cold_start_seconds_count{protocol=\"http\",part=\"ready\"} 1",
        "neaptide_idle_wakes_asked_total{result=\"done\"} 1",
    ] {
        assert!(text.contains(counted), "{counted} is not in {text}");
    }
    // Nobody waits now, so nothing is said.
    let answer = scene.say(GET_AND_CLOSE).await;
    assert!(!answer.contains("cold-start"), "{answer}");
    assert_eq!(scene.woken(), 1);
}

#[tokio::test]
async fn connections_are_kept_on_both_sides() {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    scene.pods(&[pod.address]);
    let mut client = scene.connect().await;
    for _ in 0..20 {
        client.write_all(GET).await.unwrap();
        read_until(&mut client, "\r\n\r\nhello").await;
    }
    assert_eq!(pod.requests.load(Ordering::SeqCst), 20);
    assert_eq!(pod.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_client_of_a_service_that_is_awake_is_asked_to_connect_anew() {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    scene.publish(&[pod.address], Some("serve"));
    let answer = scene.say(GET).await;
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    assert!(answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn what_is_for_the_service_is_seen_by_it() {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    scene.pods(&[pod.address]);
    let asked = b"GET /head HTTP/1.0\r\nX-A: b\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n";
    let answer = scene.say(asked).await;
    for part in [
        "HTTP/1.1",
        "\"host\": \"cart.shop\"",
        "\"x-a\": \"b\"",
        "\"x-forwarded-for\": \"9.9.9.9, 127.0.0.1\"",
        "\"x-forwarded-host\": \"cart.shop\"",
    ] {
        assert!(answer.contains(part), "{part} is not in {answer}");
    }
}

#[tokio::test]
async fn a_body_that_waited_is_sent_whole_and_once() {
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    let long = "x".repeat(300_000);
    let chunked = format!(
        "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n4\r\nlast\r\n0\r\n\r\n",
        long.len()
    );
    let answer = scene.say(chunked.as_bytes());
    let wake = async {
        scene.holds(1).await;
        scene.pods(&[pod.address]);
    };
    let (answer, ()) = tokio::join!(answer, wake);
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    assert_eq!(body.matches('x').count(), long.len());
    assert!(body.contains("last"));
    assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_client_that_leaves_is_held_no_longer() {
    let scene = Scene::new("HTTP", &json!({}));
    let mut without_body = scene.connect().await;
    without_body.write_all(GET).await.unwrap();
    let mut with_body = scene.connect().await;
    let post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    with_body.write_all(post).await.unwrap();
    scene.holds(2).await;
    drop(without_body);
    scene.holds(1).await;
    drop(with_body);
    scene.holds(0).await;
    let pod = Pod::new(&scene.tasks).await;
    scene.pods(&[pod.address]);
    scene.say(GET_AND_CLOSE).await;
    assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn more_than_may_wait_are_told_to_come_again() {
    let scene = Scene::new("HTTP", &json!({"queue": {"requests": 1}}));
    let mut waiting = scene.connect().await;
    waiting.write_all(GET).await.unwrap();
    scene.holds(1).await;
    let answer = scene.say(GET_AND_CLOSE).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["reason"], "TooManyWaiting");
    let counted = "idle_refused_total{protocol=\"http\",reason=\"TooManyWaiting\"} 1";
    assert!(scene.telemetry.text().contains(counted));
    assert_eq!(body["service"], "shop/cart");
}

#[tokio::test]
async fn the_time_that_is_up_says_where_it_went() {
    let scene = Scene::new("HTTP", &json!({"deadlineSeconds": 1}));
    let answer = scene.say(GET_AND_CLOSE).await;
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["reason"], "DeadlineExceeded");
    // Nothing was seen of a pod.
    let error = body["error"].as_str().unwrap();
    assert!(error.contains("until a pod had a place to run"), "{error}");
}

#[tokio::test]
async fn a_pod_that_refuses_is_tried_until_it_takes_it() {
    let scene = Scene::new("HTTP", &json!({}));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    scene.pods(&[address]);
    let answer = scene.say(GET_AND_CLOSE);
    let start = async {
        scene.holds(1).await;
        // Stale endpoints look just like this, so the wake is asked for.
        until(|| scene.woken() == 1).await;
        let listener = TcpListener::bind(address).await.unwrap();
        Pod::on(listener, &scene.tasks)
    };
    let (answer, pod) = tokio::join!(answer, start);
    assert!(answer.ends_with("hello"), "{answer}");
    assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_was_sent_is_not_sent_again() {
    let scene = Scene::new("HTTP", &json!({}));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = Pod::new(&scene.tasks).await;
    scene.pods(&[listener.local_addr().unwrap()]);
    let answer = scene.say(GET_AND_CLOSE);
    let break_off = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 1024];
        assert_ne!(stream.read(&mut buffer).await.unwrap(), 0);
        scene.pods(&[listener.local_addr().unwrap(), other.address]);
    };
    let (answer, ()) = tokio::join!(answer, break_off);
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("PodBrokeOff"), "{answer}");
    assert_eq!(other.requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn probes_are_answered_and_wake_nobody() {
    let said = json!({"probeResponse": [{
        "method": "GET", "path": {"type": "PathPrefix", "value": "/"},
        "response": {"status": 200, "body": "{\"ok\":true}"},
    }]});
    let scene = Scene::new("HTTP", &said);
    let answer = scene.say(GET_AND_CLOSE).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n{\"ok\":true}"), "{answer}");
    assert_eq!(scene.woken(), 0);
    assert_eq!(scene.resolver.activity.all().len(), 0);
}

#[tokio::test]
async fn browsers_get_a_page_where_that_was_asked_for() {
    let scene = Scene::new("HTTP", &json!({"waitingPage": true}));
    let asked = b"GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html,*/*\r\nConnection: close\r\n\r\n";
    let answer = scene.say(asked).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("cart is waking up"), "{answer}");
    // Whoever asks for the wake is on a thread of its own.
    until(|| (scene.woken(), scene.held()) == (1, 0)).await;
    let pod = Pod::new(&scene.tasks).await;
    scene.pods(&[pod.address]);
    until(|| {
        scene
            .resolver
            .tables
            .now()
            .pods(&neap_kit::key::Key::new("shop", "cart"))
            .len()
            == 1
    })
    .await;
    let answer = scene.say(asked).await;
    assert!(answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn a_connection_whose_answer_ended_with_trailers_is_used_again() {
    let scene = Scene::new("HTTP", &json!({}));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    scene.pods(&[listener.local_addr().unwrap()]);
    let mut client = TcpStream::connect(scene.address).await.unwrap();
    client.write_all(GET).await.unwrap();
    let (mut pod, _) = listener.accept().await.unwrap();
    for _ in 0..2 {
        read_until(&mut pod, "\r\n\r\n").await;
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: sum\r\n\r\n";
        let answer = format!("{head}2\r\nok\r\n0\r\nsum: 2\r\n\r\n");
        pod.write_all(answer.as_bytes()).await.unwrap();
        let answer = read_until(&mut client, "\r\n0\r\n").await;
        assert!(answer.contains("\r\nok\r\n"), "{answer}");
        client.write_all(GET).await.unwrap();
    }
}
