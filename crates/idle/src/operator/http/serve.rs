//! The socket.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use neap_kit::{
    clock::Clock,
    manager::{Service, accept},
};
use tokio::net::{TcpListener, TcpStream};

use super::{Answer, Answers, answer::text};

/// So many may ask at once; the others wait.
const CONNECTIONS: usize = 1024;
/// Who connects and does not ask is let go after this time.
const PATIENCE: Duration = Duration::from_secs(2);
/// Whoever asks has all of it said, and is answered, within this time.
const LIMIT: Duration = Duration::from_secs(30);
/// Nothing that is asked here is longer.
const LONGEST: usize = 1 << 20;

/// Answers on `socket` until everything that others may need answers for has ended.
pub fn serve(
    name: &'static str,
    socket: TcpListener,
    answers: Arc<dyn Answers>,
    clock: Clock,
) -> Service {
    let talk = move |stream| talk(stream, answers.clone(), clock);
    let serve = move |stop| accept(socket, CONNECTIONS, clock, stop, talk);
    Service::new(name, serve).outlasting()
}

async fn talk(stream: TcpStream, answers: Arc<dyn Answers>, clock: Clock) {
    let service = service_fn(move |request: Request<Incoming>| {
        let answers = answers.clone();
        async move {
            let answer = clock.within(LIMIT, answered(&*answers, request)).await;
            let late = || text(StatusCode::REQUEST_TIMEOUT, "this took too long");
            Ok::<_, Infallible>(answer.unwrap_or_else(late))
        }
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE);
    // A client that breaks off is its own affair.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "the body that is collected is limited"
)]
async fn answered(answers: &dyn Answers, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, LONGEST).collect().await else {
        return text(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body is too long, or broke off",
        );
    };
    let body: Bytes = body.to_bytes();
    answers.answer(&Request::from_parts(head, body)).await
}

#[cfg(test)]
mod tests;
