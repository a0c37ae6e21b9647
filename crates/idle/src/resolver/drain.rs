//! Ends well: nobody who was taken is forgotten.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::Resolver;

/// How long each part of the end may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Connections are still taken, because the data plane does not know yet.
    pub lag: Duration,
    /// What is held may still be let go; then it is refused.
    pub held: Duration,
    /// What is under way may still end; then it is cut off.
    pub rest: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            lag: Duration::from_secs(5),
            held: Duration::from_secs(15),
            rest: Duration::from_secs(8),
        }
    }
}

/// Whether this resolver is ending, for whoever says that it is ready. Cheap to copy.
#[derive(Debug, Clone, Default)]
pub struct Ending(Arc<AtomicBool>);

impl Ending {
    /// Whether it has begun to end.
    pub fn has_begun(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Ends a resolver: it is not ready from now on, `listeners` are stopped after the lag of the data
/// plane, what is held is answered or refused, and what is under way ends by itself or is left.
/// Returns how many connections were left.
pub async fn drain(
    resolver: &Resolver,
    ending: &Ending,
    listeners: &CancellationToken,
    patience: Patience,
) -> usize {
    ending.0.store(true, Ordering::SeqCst);
    let clock = resolver.clock;
    clock.sleep(patience.lag).await;
    listeners.cancel();
    resolver.ending.cancel();
    // Connections to pods that nobody uses would be waited for.
    resolver.client.close();
    resolver.tasks.close();
    if clock
        .within(patience.held, resolver.tasks.wait())
        .await
        .is_none()
    {
        resolver.holds.close();
        resolver.client.close();
        let _ = clock.within(patience.rest, resolver.tasks.wait()).await;
    }
    resolver.tasks.len()
}
