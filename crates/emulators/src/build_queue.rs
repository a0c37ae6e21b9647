//! The build queue of a Buildbarn scheduler: the gRPC service `buildbarn.buildqueuestate.BuildQueueState`
//! over workers in memory.
//!
//! [`BuildQueue`] is the state value. Its methods do what workers and clients of a scheduler do: register,
//! start and finish actions, restart. Calls of the service list and drain them. Two faults are part of the
//! state, because they are about content and not about connections: lists that are older than the drains,
//! and a restart that loses all drains.
//!
//! Invariants:
//! - a drained worker gets no action;
//! - a queue exists from the first worker that registers until the next restart.

mod messages;
mod service;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use futures::future::BoxFuture;
use http::{Request, Response};
use neap_kit::client::Body;
use parking_lot::Mutex;

pub use self::messages::{Platform, PlatformQueueName, Property, SizeClassQueueName};
use crate::system::System;

/// The id of a worker, or the fields that a pattern compares.
pub type WorkerId = BTreeMap<String, String>;

/// A scheduler's queue.
#[derive(Debug, Default)]
pub struct BuildQueue {
    state: Mutex<QueueContent>,
}

#[derive(Debug, Default, Clone)]
struct QueueContent {
    /// In the order of their registration.
    queues: Vec<SizeClassQueueName>,
    workers: BTreeMap<WorkerId, Worker>,
    drains: Vec<(SizeClassQueueName, WorkerId)>,
    /// The actions that wait, the first to come first.
    queued: VecDeque<(SizeClassQueueName, String)>,
    /// The workers that lists show, while they are old.
    stale: Option<BTreeMap<WorkerId, Worker>>,
}

#[derive(Debug, Clone)]
struct Worker {
    queue: SizeClassQueueName,
    operation: Option<String>,
}

impl BuildQueue {
    /// A worker registers, or synchronizes with what it runs.
    pub fn register(&self, queue: &SizeClassQueueName, id: WorkerId, operation: Option<&str>) {
        let mut state = self.state.lock();
        if !state.queues.contains(queue) {
            state.queues.push(queue.clone());
        }
        let worker = Worker {
            queue: queue.clone(),
            operation: operation.map(str::to_owned),
        };
        state.workers.insert(id, worker);
    }

    /// Gives an action to an idle worker that is not drained. Returns the worker; the action is queued if
    /// there is none.
    pub fn execute(&self, queue: &SizeClassQueueName, operation: &str) -> Option<WorkerId> {
        let mut state = self.state.lock();
        let drains = state.drains.clone();
        let mut workers = state.workers.iter_mut();
        let free = workers.find(|(id, worker)| {
            worker.queue == *queue && worker.operation.is_none() && !is_drained(&drains, queue, id)
        });
        let Some((id, worker)) = free else {
            let waiting = (queue.clone(), operation.to_owned());
            state.queued.push_back(waiting);
            return None;
        };
        worker.operation = Some(operation.to_owned());
        Some(id.clone())
    }

    /// Lets an action wait for a worker that asks for one.
    pub fn enqueue(&self, queue: &SizeClassQueueName, operation: &str) {
        let waiting = (queue.clone(), operation.to_owned());
        self.state.lock().queued.push_back(waiting);
    }

    /// Gives a worker the first action that waits in its queue, unless it is busy or drained.
    pub fn next_operation(&self, id: &WorkerId) -> Option<String> {
        let mut state = self.state.lock();
        let worker = state.workers.get(id)?;
        let queue = worker.queue.clone();
        if worker.operation.is_some() || is_drained(&state.drains, &queue, id) {
            return None;
        }
        let first = state.queued.iter().position(|(it, _)| *it == queue)?;
        let (_, operation) = state.queued.remove(first)?;
        let worker = state.workers.get_mut(id)?;
        worker.operation = Some(operation.clone());
        Some(operation)
    }

    /// The queue of an action: of its platform, with the longest prefix of the name of its instance and the
    /// smallest size class.
    pub fn find(&self, instance: &str, platform: &Platform) -> Option<SizeClassQueueName> {
        let state = self.state.lock();
        let found = state.queues.iter().filter_map(|queue| {
            let name = queue.platform_queue_name.as_ref()?;
            let prefix = &name.instance_name_prefix;
            let rest = instance.strip_prefix(prefix.as_str())?;
            let is_prefix = prefix.is_empty() || rest.is_empty() || rest.starts_with('/');
            let matches = is_prefix && name.platform.as_ref() == Some(platform);
            matches.then_some((prefix.len(), queue))
        });
        let best = found.min_by_key(|(length, queue)| (usize::MAX - length, queue.size_class));
        best.map(|(_, queue)| queue.clone())
    }

    /// Whether a worker is one of this queue.
    pub fn is_registered(&self, queue: &SizeClassQueueName, id: &WorkerId) -> bool {
        let state = self.state.lock();
        state.workers.get(id).is_some_and(|it| it.queue == *queue)
    }

    /// A worker has finished its action.
    pub fn finish(&self, id: &WorkerId) {
        if let Some(worker) = self.state.lock().workers.get_mut(id) {
            worker.operation = None;
        }
    }

    /// A worker has ended.
    pub fn remove(&self, id: &WorkerId) {
        self.state.lock().workers.remove(id);
    }

    /// The action that a worker runs.
    pub fn operation_of(&self, id: &WorkerId) -> Option<String> {
        self.state.lock().workers.get(id)?.operation.clone()
    }

    /// The patterns of all drains.
    pub fn drains(&self) -> Vec<WorkerId> {
        let state = self.state.lock();
        state
            .drains
            .iter()
            .map(|(_, pattern)| pattern.clone())
            .collect()
    }

    /// The scheduler restarts: everything that it knew is gone.
    pub fn restart(&self) {
        *self.state.lock() = QueueContent::default();
    }

    /// From now on lists show the workers as they are at this moment, or as they are.
    pub fn serve_stale_workers(&self, stale: bool) {
        let mut state = self.state.lock();
        state.stale = stale.then(|| state.workers.clone());
    }
}

/// A drain applies to the workers whose id has all fields of its pattern.
fn is_drained(
    drains: &[(SizeClassQueueName, WorkerId)],
    queue: &SizeClassQueueName,
    id: &WorkerId,
) -> bool {
    drains.iter().any(|(drained, pattern)| {
        drained == queue
            && pattern
                .iter()
                .all(|(key, value)| id.get(key) == Some(value))
    })
}

impl System for BuildQueue {
    fn respond(self: Arc<Self>, request: Request<Body>) -> BoxFuture<'static, Response<Body>> {
        Box::pin(service::respond(self, request))
    }
}
