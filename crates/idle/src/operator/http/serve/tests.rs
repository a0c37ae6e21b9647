use futures::future::BoxFuture;
use http::Response;
use neap_kit::telemetry::Pages;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::operator::http::Asked;

/// Says what it was asked.
#[derive(Debug)]
struct Echo;

impl Answers for Echo {
    fn answer<'a>(&'a self, asked: &'a Asked) -> BoxFuture<'a, Answer> {
        let text = format!("{} {} {}", asked.method(), asked.uri(), asked.body().len());
        Box::pin(async move { Response::new(Pages::from(text)) })
    }
}

async fn exchanged(request: &[u8]) -> String {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let stop = CancellationToken::new();
    let service = serve("echo", socket, Arc::new(Echo), Clock::system());
    let mut tasks = JoinSet::new();
    tasks.spawn(service.run(stop.clone()));
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that has heard enough may close before all is said.
    let _ = stream.write_all(request).await;
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    stop.cancel();
    while tasks.join_next().await.is_some() {}
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test]
async fn a_request_is_answered_over_a_socket() {
    let said = exchanged(
        b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
    )
    .await;
    assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
    assert!(said.ends_with("POST /a?b=c 5"), "{said}");
}

#[tokio::test]
async fn nobody_says_more_than_is_read() {
    let mut request =
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2097152\r\nConnection: close\r\n\r\n"
            .to_vec();
    request.resize(request.len() + (2 << 20), b'x');
    let said = exchanged(&request).await;
    // What is still under way when the server closes may take its answer with it.
    assert!(
        said.is_empty() || said.starts_with("HTTP/1.1 413"),
        "{said}"
    );
}

#[tokio::test]
async fn what_is_no_http_is_refused() {
    let said = exchanged(b"hello\r\n\r\n").await;
    assert!(said.starts_with("HTTP/1.1 400"), "{said}");
}
