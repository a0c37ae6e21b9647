//! A layer between a client and a server that records what passes.

mod body;
mod request;
mod response;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header::CONTENT_TYPE};
use parking_lot::Mutex;

use crate::{
    CommitLog, Verdict, Violation,
    history::{self, Operation},
    snapshot, watch,
};

use body::{CopiedBody, Sink};
use request::{ParsedRequest, Verb};
use response::Pending;

pub use body::ObservedBody;

/// Everything observed so far, shared by all layers of a test.
#[derive(Clone, Default)]
pub struct Observer {
    seen: Arc<Observations>,
    /// Reads from a lagging view are not meant to be linearizable.
    streams_only: bool,
}

#[derive(Default)]
struct Observations {
    tick: AtomicU64,
    streams: Mutex<Vec<Arc<Mutex<watch::WatchOracle>>>>,
    pages: Mutex<Vec<snapshot::Page>>,
    tokens: Mutex<std::collections::HashMap<String, String>>,
    record: Mutex<history::OperationLog>,
}

impl Observer {
    pub fn new() -> Self {
        Self::default()
    }

    /// The same observer for clients with a lagging view: only streams and pages are judged.
    #[must_use]
    pub fn of_streams_only(&self) -> Self {
        Self {
            seen: self.seen.clone(),
            streams_only: true,
        }
    }

    /// Starts a stream that does not pass through a layer; the caller adds its lines.
    pub fn stream(
        &self,
        client: &str,
        path_and_query: &str,
    ) -> Option<Arc<Mutex<watch::WatchOracle>>> {
        let (path, query) = path_and_query
            .split_once('?')
            .unwrap_or((path_and_query, ""));
        let request = ParsedRequest::parse("GET", path, Some(query))?;
        (request.verb == Verb::Watch).then(|| self.begin(client, &request))
    }

    /// Declares that every open stream had time to deliver everything up to `revision`.
    pub fn had_time_for(&self, revision: u64) {
        for stream in self.seen.streams.lock().iter() {
            stream.lock().had_time_for(revision);
        }
    }

    /// The number of answered operations on single objects.
    pub fn operations(&self) -> usize {
        self.seen.record.lock().len()
    }

    /// Judges everything that was observed.
    pub fn judge(&self, commit_log: &CommitLog) -> Verdict {
        let mut verdict = Verdict::default();
        for stream in self.seen.streams.lock().iter() {
            let stream = stream.lock();
            verdict.streams += 1;
            verdict.events += stream.events();
            let found = stream.check(commit_log).into_iter().map(Violation::Watch);
            verdict.violations.extend(found);
        }
        let pages = self.seen.pages.lock();
        verdict.pages = pages.len();
        let found = snapshot::check(&pages, commit_log);
        verdict
            .violations
            .extend(found.into_iter().map(Violation::Snapshot));
        let record = self.seen.record.lock();
        let result = record.check(Some(commit_log));
        verdict.operations = record.len();
        verdict.keys = result.keys;
        verdict.foreign = result.foreign;
        let found = result.violations.into_iter().map(Violation::History);
        verdict.violations.extend(found);
        verdict
    }

    /// Judges everything that was observed, and panics if anything is wrong.
    pub fn finish(&self, commit_log: &CommitLog) -> Verdict {
        self.judge(commit_log).or_panic()
    }

    fn tick(&self) -> u64 {
        self.seen.tick.fetch_add(1, Ordering::SeqCst)
    }

    fn begin(&self, client: &str, request: &ParsedRequest) -> Arc<Mutex<watch::WatchOracle>> {
        let mut streams = self.seen.streams.lock();
        let name = format!("stream {} of {client}: {}", streams.len(), request.text);
        let oracle =
            watch::WatchOracle::new(&name, &request.resource, request.filter(), request.start());
        let oracle = Arc::new(Mutex::new(oracle));
        streams.push(oracle.clone());
        oracle
    }

    /// Records that the definition named `plural.group` was changed.
    fn redefined(&self, definition: &str) {
        if let Some((plural, group)) = definition.split_once('.') {
            let resource = format!("{group}/{plural}");
            self.seen.record.lock().redefined(resource);
        }
    }

    fn record(&self, key: history::Key, operation: Operation) {
        if !self.streams_only {
            self.seen.record.lock().push(key, operation);
        }
    }
}

/// A server, with an observer between it and one client.
#[derive(Clone)]
pub struct ObservedService<S> {
    inner: S,
    observer: Observer,
    client: Arc<str>,
}

impl<S> ObservedService<S> {
    /// Places `observer` before `inner`; violations refer to the client by `client`.
    pub fn new(inner: S, observer: &Observer, client: &str) -> Self {
        Self {
            inner,
            observer: observer.clone(),
            client: client.into(),
        }
    }

    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    fn sink(
        &self,
        request: Option<&ParsedRequest>,
        pending: Option<Pending>,
        status: StatusCode,
    ) -> Sink {
        match (request, pending) {
            (Some(request), _) if request.verb == Verb::Watch && status.is_success() => {
                Sink::stream(self.observer.begin(&self.client, request))
            }
            (_, Some(pending)) => Sink::answer(pending, status),
            _ => Sink::Nowhere,
        }
    }
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<S, B, R> tower::Service<Request<B>> for ObservedService<S>
where
    S: tower::Service<Request<CopiedBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send,
    B: http_body::Body<Data = Bytes>,
    R: http_body::Body<Data = Bytes> + 'static,
{
    type Response = Response<ObservedBody<R>>;
    type Error = S::Error;
    type Future = BoxFuture<Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let uri = request.uri();
        let parsed = ParsedRequest::parse(request.method().as_str(), uri.path(), uri.query());
        let (parts, body) = request.into_parts();
        let (body, copy) = CopiedBody::new(body);
        let called = self.observer.tick();
        let pending = parsed
            .clone()
            .and_then(|parsed| Pending::new(&self.observer, parsed, called, copy));
        // The service that was polled ready must be called; its clone is not ready.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let answer = inner.call(Request::from_parts(parts, body));
        let observed = ObservedService {
            inner: (),
            observer: self.observer.clone(),
            client: self.client.clone(),
        };
        Box::pin(async move {
            let (parts, body) = answer.await?.into_parts();
            let json = parts
                .headers
                .get(CONTENT_TYPE)
                .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
            let sink = if json {
                observed.sink(parsed.as_ref(), pending, parts.status)
            } else {
                Sink::Nowhere
            };
            Ok(Response::from_parts(parts, ObservedBody::new(body, sink)))
        })
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer")
            .field("streams", &self.seen.streams.lock().len())
            .field("operations", &self.operations())
            .finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for ObservedService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched")
            .field("client", &self.client)
            .field("observer", &self.observer)
            .finish_non_exhaustive()
    }
}
