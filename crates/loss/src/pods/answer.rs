//! What a pod does with a connection.

use std::{convert::Infallible, io, pin::pin, sync::Arc};

use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Either, Full, Limited, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use neap_idle::resolver::net::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use crate::{
    cell::Protocol,
    ledger::Saw,
    words::{self, LONGEST},
};

/// Answers until the client leaves, or until nothing is under way once `end` has come.
pub(super) async fn serve(
    protocol: Protocol,
    stream: Stream,
    ledger: Arc<dyn Saw>,
    end: CancellationToken,
) {
    match protocol {
        Protocol::Tcp => {
            let _ = echo(stream, &*ledger).await;
        }
        Protocol::Http1 => {
            let service = service_fn(|request| http(request, &*ledger));
            let server = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            let mut server = pin!(server);
            tokio::select! {
                _ = server.as_mut() => return,
                () = end.cancelled() => server.as_mut().graceful_shutdown(),
            }
            let _ = server.await;
        }
        Protocol::Grpc => {
            let service = service_fn(move |request| {
                let ledger = ledger.clone();
                async move { grpc(request, &*ledger).await }
            });
            let server = http2::Builder::new(TokioExecutor::new());
            let server = server.serve_connection(TokioIo::new(stream), service);
            let mut server = pin!(server);
            tokio::select! {
                _ = server.as_mut() => return,
                () = end.cancelled() => server.as_mut().graceful_shutdown(),
            }
            let _ = server.await;
        }
    }
}

async fn echo(mut stream: Stream, ledger: &dyn Saw) -> io::Result<()> {
    loop {
        let mut head = [0; words::HEAD];
        stream.read_exact(&mut head).await?;
        let (id, length) = words::heard(&head);
        let mut rest = vec![0; length.min(LONGEST)];
        stream.read_exact(&mut rest).await?;
        ledger.saw(id);
        stream.write_all(&[&head[..], &rest].concat()).await?;
    }
}

async fn http(
    request: Request<Incoming>,
    ledger: &dyn Saw,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let id = request.uri().path().trim_start_matches('/').parse();
    let posted = request.method() == Method::POST;
    let body = whole(request.into_body()).await;
    let (Ok(id), Some(body)) = (id, body) else {
        return Ok(bad());
    };
    let wanted = words::payload(id);
    if posted && body != wanted {
        return Ok(bad());
    }
    ledger.saw(id);
    Ok(Response::new(Full::new(wanted)))
}

fn bad() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

type Frames = stream::Iter<std::array::IntoIter<Result<Frame<Bytes>, Infallible>, 2>>;

async fn grpc(
    request: Request<Incoming>,
    ledger: &dyn Saw,
) -> Result<Response<Either<StreamBody<Frames>, Full<Bytes>>>, Infallible> {
    let id = request.headers().get(words::ID);
    let id = id.and_then(|id| id.to_str().ok()?.parse().ok());
    let body = whole(request.into_body()).await;
    let (Some(id), Some(body)) = (id, body) else {
        return Ok(bad().map(Either::Right));
    };
    if body != words::message(id) {
        return Ok(bad().map(Either::Right));
    }
    ledger.saw(id);
    let mut trailers = HeaderMap::new();
    trailers.insert(words::STATUS, HeaderValue::from_static("0"));
    let frames = [Ok(Frame::data(body)), Ok(Frame::trailers(trailers))];
    let body = StreamBody::new(stream::iter(frames));
    let mut response = Response::new(Either::Left(body));
    let kind = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

#[expect(clippy::disallowed_methods, reason = "what is collected is limited")]
async fn whole(body: Incoming) -> Option<Bytes> {
    let collected = Limited::new(body, LONGEST).collect().await.ok()?;
    Some(collected.to_bytes())
}
