//! The parts of the operator that call other programs, in memory.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    jsonnet::{Evaluate, EvaluationError, EvaluationRequest, EvaluationResponse, evaluate},
    platform::QueueName,
    queue::{BuildQueue, Error, QueueFacts, QueueState, WorkerFacts},
};

/// Evaluates in the test's own process.
#[derive(Debug)]
pub(super) struct InProcess;

impl Evaluate for InProcess {
    fn evaluate<'a>(
        &'a self,
        files: &'a BTreeMap<String, String>,
        main: &'a str,
        variables: &'a BTreeMap<String, String>,
    ) -> BoxFuture<'a, Result<Value, EvaluationError>> {
        let request = EvaluationRequest {
            files: files.clone(),
            main: main.to_owned(),
            variables: variables.clone(),
        };
        let result = match evaluate(&request) {
            EvaluationResponse::Value(value) => Ok(value),
            EvaluationResponse::Failed(message) => Err(EvaluationError::Failed(message)),
        };
        Box::pin(async move { result })
    }
}

/// A scheduler in memory.
#[derive(Debug, Default)]
pub(super) struct FakeQueue {
    workers: Mutex<BTreeMap<String, bool>>,
    drains: Mutex<BTreeSet<BTreeMap<String, String>>>,
    silent: Mutex<bool>,
    /// The queues that it was asked about.
    asked: Mutex<BTreeSet<QueueName>>,
    /// The addresses at which it was asked.
    addresses: Mutex<BTreeSet<String>>,
}

impl FakeQueue {
    pub(super) fn register(&self, pod: &str, executing: bool) {
        self.workers.lock().insert(pod.to_owned(), executing);
    }

    /// The queues that it was asked about since the last call.
    pub(super) fn take_asked(&self) -> Vec<QueueName> {
        std::mem::take(&mut *self.asked.lock())
            .into_iter()
            .collect()
    }

    /// The addresses at which it was asked since the last call.
    pub(super) fn take_addresses(&self) -> Vec<String> {
        std::mem::take(&mut *self.addresses.lock())
            .into_iter()
            .collect()
    }

    pub(super) fn forget_drains(&self) {
        self.drains.lock().clear();
    }

    pub(super) fn drains(&self) -> Vec<BTreeMap<String, String>> {
        self.drains.lock().iter().cloned().collect()
    }

    pub(super) fn silence(&self, silent: bool) {
        *self.silent.lock() = silent;
    }

    fn answer(&self) -> Result<QueueFacts, Error> {
        if *self.silent.lock() {
            return Err(Error::Unreachable {
                address: "10.0.0.1:8984".to_owned(),
                cause: "silent".to_owned(),
            });
        }
        let drains: Vec<_> = self.drains.lock().iter().cloned().collect();
        let workers = self.workers.lock();
        let workers = workers.iter().map(|(pod, executing)| {
            let id = BTreeMap::from([("pod".to_owned(), pod.clone())]);
            WorkerFacts {
                drained: drains.contains(&id),
                id,
                executing: *executing,
            }
        });
        Ok(QueueFacts {
            workers: workers.collect(),
            drains,
            ..QueueFacts::default()
        })
    }
}

impl BuildQueue for FakeQueue {
    fn queue<'a>(
        &'a self,
        address: &'a str,
        queue: &'a QueueName,
    ) -> BoxFuture<'a, Result<QueueFacts, Error>> {
        self.addresses.lock().insert(address.to_owned());
        self.asked.lock().insert(queue.clone());
        Box::pin(async { self.answer() })
    }

    fn queues<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<QueueState>, Error>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn workers<'a>(
        &'a self,
        _: &'a str,
        _: &'a QueueName,
    ) -> BoxFuture<'a, Result<Vec<WorkerFacts>, Error>> {
        Box::pin(async { self.answer().map(|it| it.workers) })
    }

    fn set_drain<'a>(
        &'a self,
        _: &'a str,
        _: &'a QueueName,
        pattern: &'a BTreeMap<String, String>,
        drained: bool,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.answer()?;
            let mut drains = self.drains.lock();
            if drained {
                drains.insert(pattern.clone());
            } else {
                drains.remove(pattern);
            }
            Ok(())
        })
    }
}
