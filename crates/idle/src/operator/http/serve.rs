//! The socket.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use neap_kit::{clock::Clock, manager::Service};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

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
    let serve = move |stop| accept(socket, answers, clock, stop);
    Service::new(name, serve).outlasting()
}

async fn accept(
    socket: TcpListener,
    answers: Arc<dyn Answers>,
    clock: Clock,
    stop: CancellationToken,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            // A place first: who finds none waits in the line of the system.
            let place = room.clone().acquire_owned().await.ok()?;
            Some((place, socket.accept().await))
        };
        let (place, accepted) = tokio::select! {
            () = stop.cancelled() => return,
            Some(next) = next => next,
            else => return,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                let talk = talk(stream, answers.clone(), clock);
                connections.spawn(async move {
                    talk.await;
                    drop(place);
                });
            }
            // Too many open files, or a client that left: both pass.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                clock.sleep(Duration::from_millis(100)).await;
            }
        }
    }
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
