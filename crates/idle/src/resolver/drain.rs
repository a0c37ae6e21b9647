//! Graceful shutdown: every accepted connection is answered or refused.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::Resolver;

/// The longest that each phase of the shutdown may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainTimeouts {
    /// Connections are still accepted, because the data plane may still route to this resolver.
    pub data_plane_lag: Duration,
    /// Held requests may still be forwarded; after it they are refused.
    pub held_requests: Duration,
    /// Requests in flight may still finish; after it their connections are cut.
    pub in_flight: Duration,
}

impl DrainTimeouts {
    /// The longest that all parts take together.
    pub fn total(self) -> Duration {
        self.data_plane_lag + self.held_requests + self.in_flight
    }
}

impl Default for DrainTimeouts {
    fn default() -> Self {
        Self {
            data_plane_lag: Duration::from_secs(5),
            held_requests: Duration::from_secs(15),
            in_flight: Duration::from_secs(8),
        }
    }
}

/// Whether this resolver is shutting down, for its readiness check. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct DrainState(Arc<AtomicBool>);

impl DrainState {
    /// Whether the shutdown has begun.
    pub fn is_draining(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Shuts a resolver down: it is not ready from now on, `listeners` stop after the lag of the data plane,
/// held requests are answered or refused, and requests in flight finish or are left. Returns the number
/// of connections that are left.
pub async fn drain(
    resolver: &Resolver,
    state: &DrainState,
    listeners: &CancellationToken,
    timeouts: DrainTimeouts,
) -> usize {
    state.0.store(true, Ordering::SeqCst);
    let clock = resolver.clock;
    clock.sleep(timeouts.data_plane_lag).await;
    listeners.cancel();
    resolver.shutdown.cancel();
    // Otherwise the shutdown would wait for idle connections to pods.
    resolver.pool.close();
    resolver.tasks.close();
    if clock
        .within(timeouts.held_requests, resolver.tasks.wait())
        .await
        .is_none()
    {
        resolver.held_requests.close();
        resolver.pool.close();
        let _ = clock
            .within(timeouts.in_flight, resolver.tasks.wait())
            .await;
    }
    resolver.tasks.len()
}
