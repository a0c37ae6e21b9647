//! Requests wakes of a service, one at a time.

use std::time::Duration;

use futures::future::BoxFuture;
use neap_kit::{clock::Uptime, key::Key};

/// Requests that the operator wakes a service.
pub trait WakeRequester: Send + Sync + 'static {
    /// Requests a wake of `service`, for which `waiting` requests are held. Resolves once the replicas are
    /// written, or after some seconds if the write is still in progress. Repeated requests are harmless.
    fn wake(&self, service: Key, waiting: usize) -> BoxFuture<'static, Result<(), WakeFailed>>;
}

/// Why a service could not be woken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WakeFailed(pub String);

/// Delay before a successful wake request is repeated while requests are held: another writer may have
/// reset the replicas since.
const REPEAT_INTERVAL: Duration = Duration::from_secs(10);
/// Delay before a failed wake request is repeated; it doubles each time.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// Upper limit of [`RETRY_DELAY`].
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);

/// The wake requests of one service, as a value.
#[derive(Debug, Default)]
pub(super) struct WakeState {
    in_flight: bool,
    failures: u32,
    /// When the wake was first requested for the requests that are held now.
    pub(super) requested: Option<Uptime>,
    /// When the operator had written the replicas.
    pub(super) scaled: Option<Uptime>,
    /// When a pod was scheduled.
    pub(super) scheduled: Option<Uptime>,
    /// Why the last request failed, if it did.
    pub(super) failed: Option<String>,
    next: Option<Uptime>,
}

impl WakeState {
    /// Whether to send a request now. Called while requests are held.
    pub(super) fn begin(&mut self, now: Uptime) -> bool {
        if self.in_flight || self.next.is_some_and(|next| now < next) {
            return false;
        }
        self.in_flight = true;
        self.requested.get_or_insert(now);
        true
    }

    /// Records the result of a request.
    pub(super) fn end(&mut self, failed: Option<String>, now: Uptime) {
        self.in_flight = false;
        if self.requested.is_none() {
            // The clients that it was sent for have left, and its result is too old for those that
            // arrived since.
            self.next = Some(now + RETRY_DELAY);
            return;
        }
        self.failed = failed;
        let pause = if self.failed.is_none() {
            self.failures = 0;
            self.scaled.get_or_insert(now);
            REPEAT_INTERVAL
        } else {
            let pause = RETRY_DELAY.saturating_mul(1 << self.failures.min(10));
            self.failures = self.failures.saturating_add(1);
            pause.min(MAX_RETRY_DELAY)
        };
        self.next = Some(now + pause);
    }

    /// Records that a pod was scheduled. Called while requests are held.
    pub(super) fn record_scheduled(&mut self, now: Uptime) {
        if self.requested.is_some() {
            self.scheduled.get_or_insert(now);
        }
    }

    /// Resets the state when nothing is held any longer. The next held request triggers a wake after at
    /// most [`RETRY_DELAY`], so that clients that come and go do not flood the operator.
    pub(super) fn reset(&mut self, now: Uptime) {
        *self = Self {
            in_flight: self.in_flight,
            next: self.next.map(|next| next.min(now + RETRY_DELAY)),
            ..Self::default()
        };
    }

    /// When to send the next request if something is still held.
    pub(super) fn next(&self) -> Option<Uptime> {
        if self.in_flight { None } else { self.next }
    }
}
