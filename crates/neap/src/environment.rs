//! The system clock, entropy and task spawner, as the library crates take them.
//!
//! The only module of the server that reads the system time or spawns tasks. Invariant: a panic in a
//! task is never lost; [`TaskPanics`] delivers it to `neap up`.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use jiff::Timestamp;
use neap_pocket::environment::{BoxFuture, Clock, Entropy, Environment, Spawn};
use rustls::crypto::SecureRandom;
use tokio::{runtime::Handle, sync::mpsc};

/// The environment of a server in this process, and the receiver of task panics.
///
/// Must be called within a runtime, which runs the tasks; low-priority tasks run on `background`.
pub(crate) fn system(background: &Handle) -> (Environment, TaskPanics) {
    // The first panic ends the process, so a capacity of one is enough.
    let (sender, receiver) = mpsc::channel(1);
    let environment = Environment {
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy(
            rustls::crypto::aws_lc_rs::default_provider().secure_random,
        )),
        spawner: Arc::new(Supervisor {
            runtime: Handle::current(),
            background: background.clone(),
            panics: sender,
        }),
    };
    (environment, TaskPanics(receiver))
}

struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that all other code takes as a parameter"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

struct SystemEntropy(&'static dyn SecureRandom);

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        self.0
            .fill(bytes)
            .expect("the system provides random bytes");
    }
}

struct Supervisor {
    runtime: Handle,
    background: Handle,
    panics: mpsc::Sender<TaskPanic>,
}

impl Spawn for Supervisor {
    fn spawn(&self, name: &'static str, task: BoxFuture<()>) {
        self.runtime.spawn(self.supervised(name, task));
    }

    fn spawn_patient(&self, name: &'static str, task: BoxFuture<()>) {
        self.background.spawn(self.supervised(name, task));
    }
}

impl Supervisor {
    fn supervised(
        &self,
        name: &'static str,
        task: BoxFuture<()>,
    ) -> impl Future<Output = ()> + use<> {
        let panics = self.panics.clone();
        async move {
            match AssertUnwindSafe(task).catch_unwind().await {
                Ok(()) => tracing::debug!(task = name, "task ended"),
                Err(panic) => {
                    let cause = message(panic.as_ref());
                    // Full if another task panicked first: that panic is reported.
                    let _ = panics.try_send(TaskPanic { name, cause });
                }
            }
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("panicked without a message").to_owned()
}

/// A task that panicked.
#[derive(Debug)]
pub(crate) struct TaskPanic {
    /// The name the task was spawned with.
    pub(crate) name: &'static str,
    /// The panic message.
    pub(crate) cause: String,
}

/// Receives the panics of tasks.
pub(crate) struct TaskPanics(mpsc::Receiver<TaskPanic>);

impl TaskPanics {
    /// Resolves when a task has panicked.
    pub(crate) async fn next(&mut self) -> TaskPanic {
        match self.0.recv().await {
            Some(panicked) => panicked,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panicking_task_is_reported_by_name() {
        let (environment, mut panics) = system(&Handle::current());
        environment.spawner.spawn("calm", Box::pin(async {}));
        environment
            .spawner
            .spawn("doomed", Box::pin(async { panic!("out of tea") }));
        let panicked = panics.next().await;
        assert_eq!(
            (panicked.name, panicked.cause.as_str()),
            ("doomed", "out of tea")
        );
    }

    #[tokio::test]
    async fn entropy_does_not_repeat_itself() {
        let (environment, _panics) = system(&Handle::current());
        assert_ne!(environment.uuid(), environment.uuid());
    }
}
