//! A layer between a client and a server that remembers what passes.

mod answer;
mod asked;
mod body;

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
    Chronicle, Verdict, Violation,
    history::{self, Operation},
    snapshot, watch,
};

use answer::Pending;
use asked::{Asked, Verb};
use body::{Copied, Sink};

pub use body::Tapped;

/// What was seen so far, shared by all layers of a test.
#[derive(Clone, Default)]
pub struct Observer {
    seen: Arc<Seen>,
    /// Reads of a view that lags are not linearizable, nor meant to be.
    streams_only: bool,
}

#[derive(Default)]
struct Seen {
    tick: AtomicU64,
    streams: Mutex<Vec<Arc<Mutex<watch::Oracle>>>>,
    pages: Mutex<Vec<snapshot::Page>>,
    tokens: Mutex<std::collections::HashMap<String, String>>,
    record: Mutex<history::Record>,
}

impl Observer {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same observer for clients whose view lags: only streams and pages are judged.
    #[must_use]
    pub fn of_streams_only(&self) -> Self {
        Self {
            seen: self.seen.clone(),
            streams_only: true,
        }
    }

    /// Begins a stream that does not pass through a layer; its lines are fed by hand.
    pub fn stream(&self, client: &str, path_and_query: &str) -> Option<Arc<Mutex<watch::Oracle>>> {
        let (path, query) = path_and_query
            .split_once('?')
            .unwrap_or((path_and_query, ""));
        let asked = Asked::parse("GET", path, Some(query))?;
        (asked.verb == Verb::Watch).then(|| self.begin(client, &asked))
    }

    /// Says that every stream that is still read had time to deliver everything up to `revision`.
    pub fn had_time_for(&self, revision: u64) {
        for stream in self.seen.streams.lock().iter() {
            stream.lock().had_time_for(revision);
        }
    }

    /// How many operations on single objects were answered.
    pub fn operations(&self) -> usize {
        self.seen.record.lock().len()
    }

    /// Judges everything that passed.
    pub fn judge(&self, chronicle: &Chronicle) -> Verdict {
        let mut verdict = Verdict::default();
        for stream in self.seen.streams.lock().iter() {
            let stream = stream.lock();
            verdict.streams += 1;
            verdict.events += stream.events();
            let found = stream.check(chronicle).into_iter().map(Violation::Watch);
            verdict.violations.extend(found);
        }
        let pages = self.seen.pages.lock();
        verdict.pages = pages.len();
        let found = snapshot::check(&pages, chronicle);
        verdict
            .violations
            .extend(found.into_iter().map(Violation::Snapshot));
        let record = self.seen.record.lock();
        let judgement = record.check(Some(chronicle));
        verdict.operations = record.len();
        verdict.keys = judgement.keys;
        verdict.foreign = judgement.foreign;
        let found = judgement.violations.into_iter().map(Violation::History);
        verdict.violations.extend(found);
        verdict
    }

    /// Judges everything that passed, and ends the test if anything is wrong.
    pub fn finish(&self, chronicle: &Chronicle) -> Verdict {
        self.judge(chronicle).or_panic()
    }

    fn tick(&self) -> u64 {
        self.seen.tick.fetch_add(1, Ordering::SeqCst)
    }

    fn begin(&self, client: &str, asked: &Asked) -> Arc<Mutex<watch::Oracle>> {
        let mut streams = self.seen.streams.lock();
        let name = format!("stream {} of {client}: {}", streams.len(), asked.text);
        let oracle = watch::Oracle::new(&name, &asked.resource, asked.filter(), asked.start());
        let oracle = Arc::new(Mutex::new(oracle));
        streams.push(oracle.clone());
        oracle
    }

    /// Takes in that the definition called `plural.group` was changed.
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

/// A server, and an observer of what passes between it and one client.
#[derive(Clone)]
pub struct Watched<S> {
    inner: S,
    observer: Observer,
    client: Arc<str>,
}

impl<S> Watched<S> {
    /// Puts `observer` before `inner`; `client` is what violations call the one behind it.
    pub fn new(inner: S, observer: &Observer, client: &str) -> Self {
        Self {
            inner,
            observer: observer.clone(),
            client: client.into(),
        }
    }

    /// What was seen so far.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    fn sink(&self, asked: Option<&Asked>, pending: Option<Pending>, status: StatusCode) -> Sink {
        match (asked, pending) {
            (Some(asked), _) if asked.verb == Verb::Watch && status.is_success() => {
                Sink::stream(self.observer.begin(&self.client, asked))
            }
            (_, Some(pending)) => Sink::answer(pending, status),
            _ => Sink::Nowhere,
        }
    }
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<S, B, R> tower::Service<Request<B>> for Watched<S>
where
    S: tower::Service<Request<Copied<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send,
    B: http_body::Body<Data = Bytes>,
    R: http_body::Body<Data = Bytes> + 'static,
{
    type Response = Response<Tapped<R>>;
    type Error = S::Error;
    type Future = BoxFuture<Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let uri = request.uri();
        let asked = Asked::parse(request.method().as_str(), uri.path(), uri.query());
        let (parts, body) = request.into_parts();
        let (body, copy) = Copied::new(body);
        let called = self.observer.tick();
        let pending = asked
            .clone()
            .and_then(|asked| Pending::new(&self.observer, asked, called, copy));
        // What was polled ready is this one; its clone is not.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let answer = inner.call(Request::from_parts(parts, body));
        let watched = Watched {
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
                watched.sink(asked.as_ref(), pending, parts.status)
            } else {
                Sink::Nowhere
            };
            Ok(Response::from_parts(parts, Tapped::new(body, sink)))
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

impl<S> fmt::Debug for Watched<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched")
            .field("client", &self.client)
            .field("observer", &self.observer)
            .finish_non_exhaustive()
    }
}
