//! The real clock, randomness and tasks, as the libraries take them.
//!
//! The only module of the server that asks the system for the time or starts a task. The invariant: a task that
//! panics is never silently missing; whoever holds [`Deaths`] hears of it.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use jiff::Timestamp;
use neap_pocket::environment::{BoxFuture, Clock, Entropy, Environment, Spawn};
use rustls::crypto::SecureRandom;
use tokio::{runtime::Handle, sync::mpsc};

/// The surroundings of a server in this process, and the news of tasks that died.
///
/// Must be called within a runtime; tasks run on it, patient ones on another.
pub(crate) fn system(patient: &Handle) -> (Environment, Deaths) {
    // One death ends the process, so one place is enough.
    let (sender, receiver) = mpsc::channel(1);
    let environment = Environment {
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy(
            rustls::crypto::aws_lc_rs::default_provider().secure_random,
        )),
        spawner: Arc::new(Supervisor {
            runtime: Handle::current(),
            patient: patient.clone(),
            deaths: sender,
        }),
    };
    (environment, Deaths(receiver))
}

struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that everybody else is handed"
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
            .expect("a system that gives no random bytes cannot serve TLS either");
    }
}

struct Supervisor {
    runtime: Handle,
    patient: Handle,
    deaths: mpsc::Sender<Death>,
}

impl Spawn for Supervisor {
    fn spawn(&self, name: &'static str, task: BoxFuture<()>) {
        self.runtime.spawn(self.supervised(name, task));
    }

    fn spawn_patient(&self, name: &'static str, task: BoxFuture<()>) {
        self.patient.spawn(self.supervised(name, task));
    }
}

impl Supervisor {
    fn supervised(
        &self,
        name: &'static str,
        task: BoxFuture<()>,
    ) -> impl Future<Output = ()> + use<> {
        let deaths = self.deaths.clone();
        async move {
            match AssertUnwindSafe(task).catch_unwind().await {
                Ok(()) => tracing::debug!(task = name, "task ended"),
                Err(panic) => {
                    let cause = message(panic.as_ref());
                    // Full if another task died first: that one is reported.
                    let _ = deaths.try_send(Death { name, cause });
                }
            }
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it panicked without a message").to_owned()
}

/// A task that panicked.
#[derive(Debug)]
pub(crate) struct Death {
    /// The name it was started under.
    pub(crate) name: &'static str,
    /// What the panic said.
    pub(crate) cause: String,
}

/// Where news of dead tasks arrives.
pub(crate) struct Deaths(mpsc::Receiver<Death>);

impl Deaths {
    /// Resolves when a task has died; never, if all live.
    pub(crate) async fn next(&mut self) -> Death {
        match self.0.recv().await {
            Some(death) => death,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panicking_task_is_reported_by_name() {
        let (environment, mut deaths) = system(&Handle::current());
        environment.spawner.spawn("calm", Box::pin(async {}));
        environment
            .spawner
            .spawn("doomed", Box::pin(async { panic!("out of tea") }));
        let death = deaths.next().await;
        assert_eq!((death.name, death.cause.as_str()), ("doomed", "out of tea"));
    }

    #[tokio::test]
    async fn entropy_does_not_repeat_itself() {
        let (environment, _deaths) = system(&Handle::current());
        assert_ne!(environment.uuid(), environment.uuid());
    }
}
