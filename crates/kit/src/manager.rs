//! The services of a process.

use std::fmt;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

/// Something that runs until it is told to stop.
pub struct Service {
    /// Its name in logs and in the state of the process.
    pub name: &'static str,
    run: Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>,
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
        }
    }

    /// Runs it until `stop`.
    pub fn run(self, stop: CancellationToken) -> BoxFuture<'static, ()> {
        (self.run)(stop)
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
