mod callers;

use axum::{Router, body::Body, extract::Request, middleware, routing::get};
use http::{HeaderMap, HeaderValue, header};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::*;
use crate::{clock::Clock, telemetry::Telemetry};

#[tokio::test]
async fn a_body_is_read_up_to_its_limit() {
    let body = |length: usize| Body::from(format!("\"{}\"", "x".repeat(length - 2)));
    assert!(read_json(body(100), 100).await.unwrap().is_some());
    let error = read_json(body(101), 100).await.unwrap_err();
    assert!(matches!(error, BodyError::TooLong(100)), "{error}");
    assert_eq!(read_json(Body::empty(), 100).await.unwrap(), None);
}

#[test]
fn ambiguous_and_hostile_json_is_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for text in [
        r#"{"a": 1, "a": 2}"#,
        r#"{"x": [{"b": null, "\u0062": 1}]}"#,
        "{} {}",
        "{",
        "\u{feff}{}",
        &deep,
    ] {
        reject_duplicate_keys(text.as_bytes()).unwrap_err();
    }
    reject_duplicate_keys(br#"{"a": [{"a": 1}, {"a": 2.5e3}], "b": "\ud83d\ude00"}"#).unwrap();
}

#[test]
fn if_match_compares_strong_versions() {
    let headers = |value: &'static str| {
        HeaderMap::from_iter([(header::IF_MATCH, HeaderValue::from_static(value))])
    };
    assert!(if_match(&HeaderMap::new()).allows(None));
    assert!(if_match(&headers("*")).allows(Some("\"1\"")));
    assert!(!if_match(&headers("*")).allows(None));
    let two = if_match(&headers("\"1\", \"2\""));
    assert!(two.allows(Some("\"2\"")) && !two.allows(Some("\"3\"")) && !two.allows(None));
    assert!(!if_match(&headers("W/\"1\"")).allows(Some("\"1\"")));
}

#[test]
fn if_none_match_compares_weak_and_strong_versions() {
    let headers = |value: &'static str| {
        HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_static(value))])
    };
    assert!(if_none_match(&HeaderMap::new()).allows(Some("\"1\"")));
    assert!(if_none_match(&headers("*")).allows(None));
    assert!(!if_none_match(&headers("*")).allows(Some("\"1\"")));
    let two = if_none_match(&headers("W/\"1\", \"2\""));
    assert!(two.allows(None) && two.allows(Some("\"3\"")));
    for version in ["\"1\"", "W/\"1\"", "\"2\"", "W/\"2\""] {
        assert!(!two.allows(Some(version)), "{version}");
    }
}

#[tokio::test]
async fn a_request_is_counted_by_route_and_answered_with_its_id() {
    let telemetry = Telemetry::default();
    let log = AccessLog::new("rp", "x-ms-request-id", &telemetry, Clock::system());
    let router = Router::new()
        .route("/things/{name}", get(|| async { "ok" }))
        .layer(middleware::from_fn_with_state(log, access_log));
    let request = Request::get("/things/secret-name").body(Body::empty());
    let response = router.oneshot(request.unwrap()).await.unwrap();
    let id = response.headers()["x-ms-request-id"].to_str().unwrap();
    assert_eq!(id.len(), 36, "{id}");
    let text = telemetry.text();
    assert!(
        text.contains(r#"route="/things/{name}",code="200""#),
        "{text}"
    );
    assert!(!text.contains("secret-name"));
}

#[tokio::test]
async fn a_client_that_shuts_its_side_gets_its_answer_and_a_host_is_named_once() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let slow = || async {
        // The end of the client's side arrives meanwhile.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        "answered"
    };
    let router = Router::new().route("/", get(slow));
    let limits = HttpLimits::default();
    let component = server("test", socket, None, router, limits, Clock::system());
    let stop = CancellationToken::new();
    let clients = async {
        for (request, status, end) in [
            ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200, "answered"),
            ("GET / HTTP/1.0\r\n\r\n", 200, "answered"),
            (
                "GET / HTTP/1.1\r\n\r\n",
                400,
                "the request has no Host header\n",
            ),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
                400,
                "the request has more than one Host header\n",
            ),
            (
                "GET http://y/ HTTP/1.1\r\nHost: x\r\n\r\n",
                400,
                "the Host header and the target of the request differ\n",
            ),
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            let found = answer.split(' ').nth(1).map(str::parse::<u16>);
            assert_eq!(found, Some(Ok(status)), "{request:?}: {answer}");
            assert!(answer.ends_with(end), "{request:?}: {answer}");
        }
        stop.cancel();
    };
    tokio::join!(clients, component.run(stop.clone()));
}

#[tokio::test]
async fn a_server_that_stops_answers_what_it_has_accepted() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let (started, mut starts) = tokio::sync::mpsc::channel(1);
    let (finish, finishing) = tokio::sync::watch::channel(false);
    let router = Router::new().route(
        "/",
        get(move || {
            let (started, mut finishing) = (started.clone(), finishing.clone());
            async move {
                started.send(()).await.unwrap();
                finishing.wait_for(|finish| *finish).await.unwrap();
                "late, but whole"
            }
        }),
    );
    let limits = HttpLimits::default();
    let component = server("test", socket, None, router, limits, Clock::system());
    let stop = CancellationToken::new();
    let client = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        stream.write_all(request).await.unwrap();
        starts.recv().await.unwrap();
        stop.cancel();
        finish.send(true).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let (answer, ()) = tokio::join!(client, component.run(stop.clone()));
    assert!(answer.ends_with("late, but whole"), "{answer}");
}
