use futures::future::BoxFuture;
use http::Response;
use neap_kit::telemetry::ChunkedText;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::http_api::ApiRequest;

/// Responds with the request.
#[derive(Debug)]
struct Echo;

impl Handler for Echo {
    fn handle<'a>(&'a self, request: &'a ApiRequest) -> BoxFuture<'a, ApiResponse> {
        let length = request.body().len();
        let text = format!("{} {} {length}", request.method(), request.uri());
        Box::pin(async move { Response::new(ChunkedText::from(text)) })
    }
}

async fn exchange(request: &[u8]) -> String {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let stop = CancellationToken::new();
    let service = serve("echo", socket, Arc::new(Echo), Clock::system());
    let mut tasks = JoinSet::new();
    tasks.spawn(service.run(stop.clone()));
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may close before the whole request is sent.
    let _ = stream.write_all(request).await;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    stop.cancel();
    while tasks.join_next().await.is_some() {}
    String::from_utf8_lossy(&response).into_owned()
}

#[tokio::test]
async fn a_request_is_answered_over_a_socket() {
    let response = exchange(
        b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
    )
    .await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.ends_with("POST /a?b=c 5"), "{response}");
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused() {
    let mut request =
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2097152\r\nConnection: close\r\n\r\n"
            .to_vec();
    request.resize(request.len() + (2 << 20), b'x');
    let response = exchange(&request).await;
    // A connection that is reset while the client still sends may lose the response.
    assert!(
        response.is_empty() || response.starts_with("HTTP/1.1 413"),
        "{response}"
    );
}

#[tokio::test]
async fn invalid_http_is_refused() {
    let response = exchange(b"hello\r\n\r\n").await;
    assert!(response.starts_with("HTTP/1.1 400"), "{response}");
}

#[tokio::test]
async fn a_request_names_its_host_once_and_as_its_target_does() {
    for (target, hosts, status) in [
        ("/a HTTP/1.1", "Host: x\r\n", 200),
        ("/a HTTP/1.0", "", 200),
        ("/a HTTP/1.1", "", 400),
        ("/a HTTP/1.1", "Host: x\r\nHost: x\r\n", 400),
        ("/a HTTP/1.1", "Host: x y\r\n", 400),
        ("http://x/a HTTP/1.1", "Host: x\r\n", 200),
        ("http://y/a HTTP/1.1", "Host: x\r\n", 400),
    ] {
        let request = format!("GET {target}\r\n{hosts}Connection: close\r\n\r\n");
        let response = exchange(request.as_bytes()).await;
        let found = response.split(' ').nth(1).map(str::parse);
        assert_eq!(found, Some(Ok(status)), "{request:?}: {response}");
    }
}
