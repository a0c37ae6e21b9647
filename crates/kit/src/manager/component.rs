//! A supervised part of a process.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{lease::Elector, watch::WatchRunner};

/// Returns what a component waits for before it is ready; none once it is.
pub(super) type ReadinessCheck = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// A supervised part of a process, which runs until it is stopped.
pub struct Component {
    /// The name of the component in logs and in the debug state.
    pub name: &'static str,
    run: Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>,
    pub(super) readiness: Option<ReadinessCheck>,
    pub(super) phase: ShutdownPhase,
}

/// When a component is stopped: after all components of earlier phases have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ShutdownPhase {
    /// Controllers and other components that do the work.
    #[default]
    Workers,
    /// The audit of what the workers wrote.
    Audit,
    /// The anchor of the audit, which only a leader may write.
    AuditAnchor,
    /// What all of them depend on: watches, the election, the listener.
    Infrastructure,
}

impl ShutdownPhase {
    pub(super) const ALL: [Self; 4] = [
        Self::Workers,
        Self::Audit,
        Self::AuditAnchor,
        Self::Infrastructure,
    ];
}

impl Component {
    /// A component that runs until the token it is given is cancelled, then finishes what it has
    /// started and returns.
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
            phase: ShutdownPhase::Workers,
        }
    }

    /// The same component, which is not ready as long as `not_ready` returns what it waits for.
    pub fn ready_when(
        mut self,
        not_ready: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.readiness = Some(Arc::new(not_ready));
        self
    }

    /// The same component, stopped in another phase.
    pub fn in_phase(mut self, phase: ShutdownPhase) -> Self {
        self.phase = phase;
        self
    }

    /// The same component, stopped after all components that may need it have ended.
    pub fn stopped_last(self) -> Self {
        self.in_phase(ShutdownPhase::Infrastructure)
    }

    /// Runs it until `stop`.
    pub fn run(self, stop: CancellationToken) -> BoxFuture<'static, ()> {
        (self.run)(stop)
    }
}

/// Stopped after the components that read from the caches.
impl From<WatchRunner> for Component {
    fn from(watches: WatchRunner) -> Self {
        Self::new("watches", |stop| watches.run(stop)).stopped_last()
    }
}

/// Stopped after the components that write, so that no other process leads before they have ended.
impl From<Elector> for Component {
    fn from(elector: Elector) -> Self {
        Self::new("election", |stop| elector.run(stop)).stopped_last()
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Component")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
