//! How a pod serves a connection.

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
    ledger::RequestSink,
    payloads::{self, MAX_BODY},
};

/// Serves until the client leaves, or until no request is in flight after `end`.
pub(super) async fn serve(
    protocol: Protocol,
    stream: Stream,
    ledger: Arc<dyn RequestSink>,
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

async fn echo(mut stream: Stream, ledger: &dyn RequestSink) -> io::Result<()> {
    loop {
        let mut head = [0; payloads::HEAD];
        stream.read_exact(&mut head).await?;
        let (id, length) = payloads::parse_head(&head);
        let mut rest = vec![0; length.min(MAX_BODY)];
        stream.read_exact(&mut rest).await?;
        ledger.record_received(id);
        stream.write_all(&[&head[..], &rest].concat()).await?;
    }
}

async fn http(
    request: Request<Incoming>,
    ledger: &dyn RequestSink,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let id = request.uri().path().trim_start_matches('/').parse();
    let posted = request.method() == Method::POST;
    let body = whole(request.into_body()).await;
    let (Ok(id), Some(body)) = (id, body) else {
        return Ok(bad());
    };
    let wanted = payloads::payload(id);
    if posted && body != wanted {
        return Ok(bad());
    }
    ledger.record_received(id);
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
    ledger: &dyn RequestSink,
) -> Result<Response<Either<StreamBody<Frames>, Full<Bytes>>>, Infallible> {
    let id = request.headers().get(payloads::ID);
    let id = id.and_then(|id| id.to_str().ok()?.parse().ok());
    let body = whole(request.into_body()).await;
    let (Some(id), Some(body)) = (id, body) else {
        return Ok(bad().map(Either::Right));
    };
    if body != payloads::message(id) {
        return Ok(bad().map(Either::Right));
    }
    ledger.record_received(id);
    let mut trailers = HeaderMap::new();
    trailers.insert(payloads::STATUS, HeaderValue::from_static("0"));
    let frames = [Ok(Frame::data(body)), Ok(Frame::trailers(trailers))];
    let body = StreamBody::new(stream::iter(frames));
    let mut response = Response::new(Either::Left(body));
    let kind = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

#[expect(clippy::disallowed_methods, reason = "what is collected is limited")]
async fn whole(body: Incoming) -> Option<Bytes> {
    let collected = Limited::new(body, MAX_BODY).collect().await.ok()?;
    Some(collected.to_bytes())
}
