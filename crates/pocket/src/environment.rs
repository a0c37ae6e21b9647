//! What the server takes from its environment: time, randomness and tasks.

pub(crate) mod lane;
mod poll_on_wake;
mod simulated;

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use jiff::Timestamp;

pub(crate) use poll_on_wake::PollOnWake;

/// A future that was boxed so that it fits behind a trait object.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// The only source of time.
pub trait Clock: Send + Sync + 'static {
    /// Wall-clock time, for timestamps in objects.
    fn now(&self) -> Timestamp;
    /// Resolves once `duration` has passed on this clock.
    fn sleep(&self, duration: Duration) -> BoxFuture<()>;
}

/// The only source of randomness.
pub trait Entropy: Send + Sync + 'static {
    /// Fills `bytes` with random data.
    fn fill(&self, bytes: &mut [u8]);
}

/// Runs background tasks; every task has a name for the supervisor.
pub trait Spawn: Send + Sync + 'static {
    /// Starts `task` and returns at once.
    fn spawn(&self, name: &'static str, task: BoxFuture<()>);

    /// As [`Self::spawn`], for a task that does much work at a time and should yield to all others.
    fn spawn_patient(&self, name: &'static str, task: BoxFuture<()>) {
        self.spawn(name, task);
    }
}

/// The environment of one server.
#[derive(Clone)]
pub struct Environment {
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub spawner: Arc<dyn Spawn>,
}

impl Environment {
    /// A random version 4 UUID, the uid of an object.
    pub fn uuid(&self) -> String {
        let mut bytes = [0; 16];
        self.entropy.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes)
            .into_uuid()
            .to_string()
    }

    /// The current time as the API writes it: RFC 3339, whole seconds, UTC.
    pub fn timestamp(&self) -> String {
        rfc3339(self.clock.now())
    }
}

/// A time as the API writes it: RFC 3339, whole seconds, UTC.
pub fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}
