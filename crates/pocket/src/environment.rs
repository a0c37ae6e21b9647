//! What the server takes from its surroundings: time, randomness and tasks.
//!
//! All three are parameters so that a test can pause the clock, fix the seed and own every task.

pub(crate) mod lane;
mod rehearsal;
mod seldom;

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use jiff::Timestamp;

pub(crate) use seldom::Seldom;

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

/// Runs background work; every task carries a name so that a supervisor can speak of it.
pub trait Spawn: Send + Sync + 'static {
    /// Starts `task` and returns at once.
    fn spawn(&self, name: &'static str, task: BoxFuture<()>);

    /// The same for a task that does much at a time and lets every other go first.
    fn spawn_patient(&self, name: &'static str, task: BoxFuture<()>) {
        self.spawn(name, task);
    }
}

/// The surroundings of one server.
#[derive(Clone)]
pub struct Environment {
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where randomness comes from.
    pub entropy: Arc<dyn Entropy>,
    /// Where tasks go.
    pub spawner: Arc<dyn Spawn>,
}

impl Environment {
    /// A random version 4 UUID, as the server gives to every object.
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
