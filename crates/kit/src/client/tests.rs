//! Whole calls over transports in memory, and over sockets.

mod calls;
mod circuits;
mod decisions;
mod faults;
mod redirects;
mod sockets;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use parking_lot::Mutex;
use tower::BoxError;

use super::{Body, Client, ClientBuilder, Transport, TransportError, transport_fn};
use crate::clock::Clock;

/// What a host does with a request.
#[derive(Debug, Clone)]
enum Answer {
    Status(u16),
    WithHeaders(u16, Vec<(&'static str, String)>),
    /// The beginning of a body that breaks off.
    Truncated(&'static str),
    Text(&'static str),
    NotSent,
    Interrupted,
    Untrusted,
    /// It never comes.
    Silence,
}

/// A request that a host has received.
#[derive(Debug, Clone)]
struct ReceivedRequest {
    method: String,
    url: String,
    headers: HeaderMap,
    body: Bytes,
}

/// A host with a script. After its last line it answers 200.
#[derive(Debug, Clone, Default)]
struct Host {
    script: Arc<Mutex<VecDeque<Answer>>>,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Host {
    fn with(script: impl IntoIterator<Item = Answer>) -> Self {
        let host = Self::default();
        host.script.lock().extend(script);
        host
    }

    fn client(&self) -> ClientBuilder {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        Client::builder("test", clock).transport(self.transport())
    }

    fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().clone()
    }

    fn transport(&self) -> Transport {
        let host = self.clone();
        transport_fn(move |request| host.clone().answer(request))
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, TransportError> {
        let next = self.script.lock().pop_front();
        if matches!(next, Some(Answer::NotSent)) {
            return Err(TransportError::NotSent("refused".into()));
        }
        let (head, body) = request.into_parts();
        let received = ReceivedRequest {
            method: head.method.to_string(),
            url: head.uri.to_string(),
            headers: head.headers,
            body: body.bytes(1 << 20).await.unwrap(),
        };
        self.received.lock().push(received);
        let text = |status, text: &'static str| {
            let mut response = Response::new(Body::from(text));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            response
        };
        match next.unwrap_or(Answer::Status(200)) {
            Answer::Status(status) => Ok(text(status, "")),
            Answer::Text(content) => Ok(text(200, content)),
            Answer::WithHeaders(status, headers) => {
                let mut response = text(status, "");
                for (name, value) in headers {
                    let value = value.parse().unwrap();
                    response.headers_mut().insert(name, value);
                }
                Ok(response)
            }
            Answer::Truncated(beginning) => {
                let broken: BoxError = "connection reset".into();
                let parts = [Ok(Bytes::from(beginning)), Err(broken)];
                let body = Body::from_stream(futures::stream::iter(parts));
                Ok(Response::new(body))
            }
            Answer::NotSent => Err(TransportError::NotSent("refused".into())),
            Answer::Interrupted => Err(TransportError::Interrupted("reset".into())),
            Answer::Untrusted => Err(TransportError::Untrusted("unknown issuer".into())),
            Answer::Silence => {
                tokio::time::sleep(Duration::from_hours(10)).await;
                Ok(text(200, "too late"))
            }
        }
    }
}
