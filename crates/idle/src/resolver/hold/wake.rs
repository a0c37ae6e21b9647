//! Asking that a service be woken, once at a time.

use std::time::Duration;

use futures::future::BoxFuture;
use neap_kit::{clock::Uptime, key::Key};

/// Somebody who can wake services.
pub trait Waker: Send + Sync + 'static {
    /// Asks that `service` be woken because so many wait for it. Resolves once the replicas are
    /// written, or after some seconds if nobody knows yet whether they will be. Asking again is
    /// harmless.
    fn wake(&self, service: Key, waiting: usize) -> BoxFuture<'static, Result<(), NotWoken>>;
}

/// The service was not woken, for this reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotWoken(pub String);

/// A wake that was asked for is asked for again after this time while somebody waits: whoever
/// wrote the replicas may have been overruled since.
const AGAIN: Duration = Duration::from_secs(10);
/// One that failed is tried again after this time, and after twice as long each time.
const RETRY: Duration = Duration::from_millis(100);
/// It is tried again after this time at the latest.
const RETRY_AT_MOST: Duration = Duration::from_secs(2);

/// The wakes of one service, as a value.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    under_way: bool,
    failures: u32,
    /// When the present spell of waiting was first asked for, and when that came to something.
    pub(super) asked: Option<Uptime>,
    pub(super) scaled: Option<Uptime>,
    /// When a pod had a place to run.
    pub(super) scheduled: Option<Uptime>,
    /// Why the last one failed, if it did.
    pub(super) failed: Option<String>,
    next: Option<Uptime>,
}

impl Wakes {
    /// Whether to ask now. Somebody waits.
    pub(super) fn begin(&mut self, now: Uptime) -> bool {
        if self.under_way || self.next.is_some_and(|next| now < next) {
            return false;
        }
        self.under_way = true;
        self.asked.get_or_insert(now);
        true
    }

    /// What was asked came to this.
    pub(super) fn end(&mut self, failed: Option<String>, now: Uptime) {
        self.under_way = false;
        if self.asked.is_none() {
            // Whoever waited then has left. What was seen before others came says nothing to them.
            self.next = Some(now + RETRY);
            return;
        }
        self.failed = failed;
        let pause = if self.failed.is_none() {
            self.failures = 0;
            self.scaled.get_or_insert(now);
            AGAIN
        } else {
            let pause = RETRY.saturating_mul(1 << self.failures.min(10));
            self.failures = self.failures.saturating_add(1);
            pause.min(RETRY_AT_MOST)
        };
        self.next = Some(now + pause);
    }

    /// A pod has a place to run. Somebody waits.
    pub(super) fn scheduled(&mut self, now: Uptime) {
        if self.asked.is_some() {
            self.scheduled.get_or_insert(now);
        }
    }

    /// Nobody waits any more, so the next who does asks at once, or nearly: clients who come and go
    /// make no storm.
    pub(super) fn rest(&mut self, now: Uptime) {
        *self = Self {
            under_way: self.under_way,
            next: self.next.map(|next| next.min(now + RETRY)),
            ..Self::default()
        };
    }

    /// When to ask again if somebody still waits.
    pub(super) fn next(&self) -> Option<Uptime> {
        if self.under_way { None } else { self.next }
    }
}
