//! The tasks of clients: each on the lane that it requests, isolated from panics of others.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;
use hyper::rt::Executor;

use super::responses::cause;
use crate::environment::{Spawn, lane::travel};

/// Spawns the tasks of clients.
#[derive(Clone)]
pub(super) struct Tasks(Arc<dyn Spawn>);

impl Tasks {
    pub(super) fn new(spawner: Arc<dyn Spawn>) -> Self {
        Self(spawner)
    }

    pub(super) fn spawn(
        &self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let contained = async move {
            // A panic ends only this task.
            if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
                tracing::error!(cause = cause(&*panic), "a task panicked: {name}");
            }
        };
        let travelling = travel(self.0.clone(), name, Box::pin(contained));
        self.0.spawn(name, Box::pin(travelling));
    }
}

/// For an HTTP/2 connection, where each request is a task of its own.
impl<F> Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, request: F) {
        self.spawn("request", request);
    }
}
