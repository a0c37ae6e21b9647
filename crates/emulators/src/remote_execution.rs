//! Remote execution as a Buildbarn farm offers it, in memory: Capabilities, the content addressable storage, the
//! byte stream, the action cache, Execution, and for workers `OperationQueue`.
//!
//! [`RemoteExecution`] is the state value. Clients upload blobs and execute actions; workers synchronize, get
//! actions, and say how these ended. What is queued and drained is in a [`BuildQueue`], whose service is served
//! as well. It executes nothing itself: what a worker says is the result.
//!
//! Invariants:
//! - an action goes to one worker, and to no other while that one synchronizes;
//! - a drained worker keeps its action and gets no other;
//! - a blob is stored under its own digest, and nothing else is.
//!
//! Left out are compression, chunked blobs, priorities, invocations, routing by size class (the smallest is used),
//! and the limit on the time for which a queue without workers is kept.

pub mod client;
mod executor;
pub mod messages;
mod precondition;
mod service;
mod store;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use neap_kit::{client::Body, clock::Clock};

use self::{executor::Executor, messages::BlobDigest, store::BlobStore};
use crate::{
    build_queue::{BuildQueue, WorkerId},
    system::System,
};

/// A farm: its storage and its scheduler.
#[derive(Debug)]
pub struct RemoteExecution {
    store: BlobStore,
    executor: Arc<Executor>,
}

impl RemoteExecution {
    /// A farm without blobs and workers.
    pub fn new(clock: Clock) -> Self {
        Self {
            store: BlobStore::default(),
            executor: Arc::new(Executor::new(clock)),
        }
    }

    /// The queue of the scheduler. Changes that are made to it directly reach waiting workers when they
    /// synchronize the next time.
    pub fn build_queue(&self) -> &Arc<BuildQueue> {
        self.executor.queue()
    }

    /// The content of a blob.
    pub fn blob(&self, digest: &BlobDigest) -> Option<Bytes> {
        self.store.get(digest)
    }

    /// The process of a worker has ended; its action fails.
    pub fn remove_worker(&self, id: &WorkerId) {
        self.executor.remove_worker(id);
    }

    /// The scheduler restarts: queues, drains and executions are gone, and blobs stay.
    pub fn restart(&self) {
        self.executor.restart();
    }
}

impl System for RemoteExecution {
    fn respond(self: Arc<Self>, request: Request<Body>) -> BoxFuture<'static, Response<Body>> {
        Box::pin(service::respond(self, request))
    }
}
