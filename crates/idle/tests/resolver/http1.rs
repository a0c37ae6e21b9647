use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    fixture::{ResolverFixture, read_until, until},
    pod::Pod,
};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_AND_CLOSE: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn a_request_is_held_until_a_pod_is_ready_and_its_answer_shows_that() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    let answer = fixture.exchange(GET_AND_CLOSE);
    let wake = async {
        fixture.wait_until_waking(1).await;
        fixture.pods(&[pod.address]);
    };
    let (answer, ()) = tokio::join!(answer, wake);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    assert!(
        answer.contains("x-neaptide-cold-start: queue;dur="),
        "{answer}"
    );
    assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
    let text = fixture.telemetry.text();
    for counted in [
        "neaptide_idle_cold_start_seconds_count{protocol=\"http\",part=\"ready\"} 1",
        "neaptide_idle_wakes_asked_total{result=\"done\"} 1",
    ] {
        assert!(text.contains(counted), "{counted} is not in {text}");
    }
    // This request is not held, so its answer has no such header.
    let answer = fixture.exchange(GET_AND_CLOSE).await;
    assert!(!answer.contains("cold-start"), "{answer}");
    assert_eq!(fixture.wake_requests(), 1);
}

#[tokio::test]
async fn connections_are_reused_on_both_sides() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    let mut client = fixture.connect().await;
    for _ in 0..20 {
        client.write_all(GET).await.unwrap();
        read_until(&mut client, "\r\n\r\nhello").await;
    }
    assert_eq!(pod.requests.load(Ordering::SeqCst), 20);
    assert_eq!(pod.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_client_of_a_service_that_is_awake_has_to_reconnect() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.publish(&[pod.address], Some("serve"));
    let answer = fixture.exchange(GET).await;
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    assert!(answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn end_to_end_headers_reach_the_pod() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    let request = b"GET /head HTTP/1.0\r\nX-A: b\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n";
    let answer = fixture.exchange(request).await;
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
async fn the_body_of_a_held_request_is_sent_completely_and_once() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    let long = "x".repeat(300_000);
    let chunked = format!(
        "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n4\r\nlast\r\n0\r\n\r\n",
        long.len()
    );
    let answer = fixture.exchange(chunked.as_bytes());
    let wake = async {
        fixture.wait_until_held(1).await;
        fixture.pods(&[pod.address]);
    };
    let (answer, ()) = tokio::join!(answer, wake);
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    assert_eq!(body.matches('x').count(), long.len());
    assert!(body.contains("last"));
    assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_client_that_leaves_is_no_longer_held() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let mut without_body = fixture.connect().await;
    without_body.write_all(GET).await.unwrap();
    let mut with_body = fixture.connect().await;
    let post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    with_body.write_all(post).await.unwrap();
    fixture.wait_until_held(2).await;
    drop(without_body);
    fixture.wait_until_held(1).await;
    drop(with_body);
    fixture.wait_until_held(0).await;
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    fixture.exchange(GET_AND_CLOSE).await;
    assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_full_queue_answers_with_retry_after() {
    let fixture = ResolverFixture::new("HTTP", &json!({"queue": {"requests": 1}}));
    let mut waiting = fixture.connect().await;
    waiting.write_all(GET).await.unwrap();
    fixture.wait_until_held(1).await;
    let answer = fixture.exchange(GET_AND_CLOSE).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["reason"], "TooManyWaiting");
    let counted = "idle_refused_total{protocol=\"http\",reason=\"TooManyWaiting\"} 1";
    assert!(fixture.telemetry.text().contains(counted));
    assert_eq!(body["service"], "shop/cart");
}

#[tokio::test]
async fn an_exceeded_deadline_reports_where_the_time_went() {
    let fixture = ResolverFixture::new("HTTP", &json!({"deadlineSeconds": 1}));
    let answer = fixture.exchange(GET_AND_CLOSE).await;
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["reason"], "DeadlineExceeded");
    // No endpoint of a pod was seen.
    let error = body["error"].as_str().unwrap();
    assert!(
        error.contains("waiting for a pod to be scheduled"),
        "{error}"
    );
}

#[tokio::test]
async fn an_exceeded_deadline_reports_why_no_pod_is_ready_and_no_names() {
    for (reason, message) in [
        (
            "CrashLoopBackOff",
            "a container of its pods crashes again and again",
        ),
        ("ImagePullBackOff", "an image of its pods cannot be pulled"),
        ("Unschedulable", "no node takes its pods"),
        ("ProbeFailing", "a probe of its pods does not succeed"),
    ] {
        let fixture = ResolverFixture::new("HTTP", &json!({"deadlineSeconds": 1}));
        let exchange = fixture.exchange(GET_AND_CLOSE);
        let learn = async {
            fixture.wait_until_held(1).await;
            // The operator finds it out while the request is held.
            fixture.not_ready(reason, "pod cart-1: secret.example/cart:1 of node-7");
        };
        let (answer, ()) = tokio::join!(exchange, learn);
        assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body["cause"], json!({"reason": reason, "message": message}));
        assert!(body["error"].as_str().unwrap().ends_with(message), "{body}");
        assert!(
            !answer.contains("secret.example") && !answer.contains("node-7"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn the_waiting_page_says_why_no_pod_is_ready() {
    let fixture = ResolverFixture::new("HTTP", &json!({"waitingPage": true}));
    fixture.not_ready("ImagePullBackOff", "pod cart-1: secret.example/cart:1");
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nConnection: close\r\n\r\n";
    let answer = fixture.exchange(request).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer.contains("It does not answer yet: an image of its pods cannot be pulled."),
        "{answer}"
    );
}

#[tokio::test]
async fn a_pod_that_refuses_connections_is_retried_until_it_accepts() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    fixture.pods(&[address]);
    let answer = fixture.exchange(GET_AND_CLOSE);
    let start = async {
        fixture.wait_until_held(1).await;
        // Stale endpoints look the same, so a wake is requested.
        until(|| fixture.wake_requests() == 1).await;
        let listener = TcpListener::bind(address).await.unwrap();
        Pod::on(listener, &fixture.tasks)
    };
    let (answer, pod) = tokio::join!(answer, start);
    assert!(answer.ends_with("hello"), "{answer}");
    assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_request_that_was_sent_is_not_sent_again() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = Pod::new(&fixture.tasks).await;
    fixture.pods(&[listener.local_addr().unwrap()]);
    let answer = fixture.exchange(GET_AND_CLOSE);
    let break_off = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 1024];
        assert_ne!(stream.read(&mut buffer).await.unwrap(), 0);
        fixture.pods(&[listener.local_addr().unwrap(), other.address]);
    };
    let (answer, ()) = tokio::join!(answer, break_off);
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("PodBrokeOff"), "{answer}");
    assert_eq!(other.requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn probes_are_answered_without_a_wake() {
    let spec = json!({"probeResponse": [{
        "method": "GET", "path": {"type": "PathPrefix", "value": "/"},
        "response": {"status": 200, "body": "{\"ok\":true}"},
    }]});
    let fixture = ResolverFixture::new("HTTP", &spec);
    let answer = fixture.exchange(GET_AND_CLOSE).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n{\"ok\":true}"), "{answer}");
    assert_eq!(fixture.wake_requests(), 0);
    assert_eq!(fixture.resolver.activity.all().len(), 0);
}

#[tokio::test]
async fn browsers_get_the_waiting_page_if_it_is_enabled() {
    let fixture = ResolverFixture::new("HTTP", &json!({"waitingPage": true}));
    let request =
        b"GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html,*/*\r\nConnection: close\r\n\r\n";
    let answer = fixture.exchange(request).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("cart is waking up"), "{answer}");
    // The wake is requested in a task of its own.
    until(|| (fixture.wake_requests(), fixture.held()) == (1, 0)).await;
    let pod = Pod::new(&fixture.tasks).await;
    fixture.pods(&[pod.address]);
    until(|| {
        fixture
            .resolver
            .route_table
            .current()
            .pods(&neap_kit::key::Key::new("shop", "cart"))
            .len()
            == 1
    })
    .await;
    let answer = fixture.exchange(request).await;
    assert!(answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn a_connection_whose_answer_ended_with_trailers_is_reused() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    fixture.pods(&[listener.local_addr().unwrap()]);
    let mut client = TcpStream::connect(fixture.address).await.unwrap();
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
