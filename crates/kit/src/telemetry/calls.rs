//! Counts requests to the API: reads, watches and writes.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request, Response, Uri};
use tower::{Layer, Service};

use super::{ApiCallFinished, Telemetry};
use crate::clock::Clock;

/// A layer around the transport of a client that counts its requests.
#[derive(Debug, Clone)]
pub struct CountCalls {
    telemetry: Telemetry,
    clock: Clock,
}

impl CountCalls {
    /// Counts into `telemetry`.
    pub fn new(telemetry: Telemetry, clock: Clock) -> Self {
        Self { telemetry, clock }
    }
}

impl<S> Layer<S> for CountCalls {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            calls: self.clone(),
        }
    }
}

/// A transport whose requests are counted.
#[derive(Debug, Clone)]
pub struct Counted<S> {
    inner: S,
    calls: CountCalls,
}

impl<S, B, R> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let verb = verb(request.method(), request.uri());
        let CountCalls { telemetry, clock } = self.calls.clone();
        let begun = clock.uptime();
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await;
            let code = response.as_ref().ok();
            let code = code.map(|response| response.status().as_u16());
            let took = clock.uptime().saturating_sub(begun);
            telemetry.emit(&ApiCallFinished { verb, code, took });
            response
        })
    }
}

/// The verb of a request, as the API names it.
pub(super) fn verb(method: &Method, uri: &Uri) -> &'static str {
    let has = |wanted: &str| {
        let query = uri.query().unwrap_or_default();
        query.split('&').any(|part| part == wanted)
    };
    match *method {
        Method::GET if has("watch=true") || has("watch=1") => "watch",
        Method::GET if is_collection(uri.path()) => "list",
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if is_collection(uri.path()) => "deletecollection",
        Method::DELETE => "delete",
        _ => "other",
    }
}

fn is_collection(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let version_follows = match parts.next() {
        Some("api") => 1,
        Some("apis") => 2,
        _ => return false,
    };
    let rest: Vec<_> = parts.skip(version_follows).collect();
    match rest[..] {
        // Subresources of a namespace.
        ["namespaces", _, "status" | "finalize"] => false,
        [_] | ["namespaces", _, _] => true,
        _ => false,
    }
}
