//! Something that runs until it is told to stop.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{lease::Elector, watch::WatchService};

/// Says what a service waits for before it is ready; nothing once it is.
pub(super) type Readiness = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Something that runs until it is told to stop.
pub struct Service {
    /// Its name in logs and in the state of the process.
    pub name: &'static str,
    run: Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>,
    pub(super) readiness: Option<Readiness>,
    pub(super) turn: Turn,
}

/// When a service is told to stop: after all of the turns before its own have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Turn {
    /// Those who do the work.
    #[default]
    Work,
    /// Those who write down what was done.
    Record,
    /// Those who seal what was written down, which only the one that leads may do.
    Seal,
    /// What all of them stand on: watches, the election, the listener.
    Ground,
}

impl Turn {
    pub(super) const ALL: [Self; 4] = [Self::Work, Self::Record, Self::Seal, Self::Ground];
}

impl Service {
    /// A service that does `run` until the token it is given is cancelled, then ends what it has
    /// begun and returns.
    pub fn new<F>(
        name: &'static str,
        run: impl FnOnce(CancellationToken) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self {
            name,
            run: Box::new(move |stop| Box::pin(run(stop))),
            readiness: None,
            turn: Turn::Work,
        }
    }

    /// The same service, which is not ready as long as `missing` says what it waits for.
    pub fn ready_once(
        mut self,
        missing: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.readiness = Some(Arc::new(missing));
        self
    }

    /// The same service, stopped in another turn.
    pub fn in_turn(mut self, turn: Turn) -> Self {
        self.turn = turn;
        self
    }

    /// The same service, stopped only after all that may need it have ended.
    pub fn outlasting(self) -> Self {
        self.in_turn(Turn::Ground)
    }

    /// Runs it until `stop`.
    pub fn run(self, stop: CancellationToken) -> BoxFuture<'static, ()> {
        (self.run)(stop)
    }
}

/// Ends after those that read from it.
impl From<WatchService> for Service {
    fn from(watches: WatchService) -> Self {
        Self::new("watches", |stop| watches.run(stop)).outlasting()
    }
}

/// Ends after those that write, so that nobody else leads before.
impl From<Elector> for Service {
    fn from(elector: Elector) -> Self {
        Self::new("election", |stop| elector.run(stop)).outlasting()
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
