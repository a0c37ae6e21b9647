//! How requests are sent: how many at a time, how often, and how many there were.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use neap_kit::client::{Error, Fetched, RequestBuilder, Response, RetryPolicy};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::RegistryClient;

/// What clients of the same origin may do at a time, whatever their credentials are.
#[derive(Debug)]
pub(super) struct Limits {
    at_a_time: usize,
    by_registry: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    /// One place for each blob that is being transferred. It is apart from those of requests: a copy holds its place
    /// while it makes requests to two registries, so that it would wait for itself.
    transfers: Arc<Semaphore>,
}

impl Limits {
    pub(super) fn new(at_a_time: usize) -> Self {
        let at_a_time = at_a_time.max(1);
        Self {
            at_a_time,
            by_registry: Mutex::default(),
            transfers: Arc::new(Semaphore::new(at_a_time)),
        }
    }

    /// The requests to one registry whose answer has not begun.
    pub(super) fn of(&self, host: &str) -> Arc<Semaphore> {
        let mut all = self.by_registry.lock();
        if let Some(found) = all.get(host) {
            return found.clone();
        }
        let made = Arc::new(Semaphore::new(self.at_a_time));
        all.insert(host.to_owned(), made.clone());
        made
    }
}

/// The number of requests that a client has sent.
#[derive(Debug, Clone, Default)]
pub struct RequestCount(Arc<AtomicU32>);

impl RequestCount {
    /// The number so far.
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, failure: Option<&Error>) {
        // An open circuit stops the request on this side.
        if !matches!(failure, Some(Error::CircuitOpen { .. })) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl RegistryClient {
    /// The same client, which sends each request once, for callers that repeat what failed by themselves.
    pub fn without_retries(&self) -> Self {
        Self {
            retries: false,
            ..self.clone()
        }
    }

    /// The same client, and the number of requests that it sends from now on, with those for challenges and tokens.
    /// Attempts after the first and redirects are not counted.
    pub fn counting(&self) -> (Self, RequestCount) {
        let sent = RequestCount::default();
        let client = Self {
            sent: sent.clone(),
            ..self.clone()
        };
        (client, sent)
    }

    /// A place among the blobs that are transferred at a time, to be held until the blob has arrived. None is held
    /// while waiting for another.
    pub(in crate::oci) async fn transfer(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        self.limits.transfers.clone().acquire_owned().await.ok()
    }

    /// Sends a request.
    pub(super) async fn issue(&self, request: RequestBuilder) -> Result<Response, Error> {
        let response = self.adjusted(request).send().await;
        self.sent.add(response.as_ref().err());
        response
    }

    /// Sends a request and reads the whole answer.
    pub(super) async fn issue_whole(
        &self,
        request: RequestBuilder,
        limit: usize,
    ) -> Result<Fetched, Error> {
        let answer = self.adjusted(request).fetch(limit).await;
        self.sent.add(answer.as_ref().err());
        answer
    }

    fn adjusted(&self, request: RequestBuilder) -> RequestBuilder {
        let request = request.insecure(self.options.insecure);
        if self.retries {
            request
        } else {
            request.retry(RetryPolicy::never())
        }
    }
}
