//! Observation of reconciles. Only tests observe; production code does not.

use std::fmt;

use super::ObservedWatches;

/// Receives every reconcile when it starts.
pub trait ReconcileObserver: fmt::Debug + Send + Sync {
    /// Returns the number of this reconcile, which [`current_reconcile`](super::current_reconcile)
    /// returns while it runs.
    fn on_start(&self, start: &ReconcileStart<'_>) -> u64;
}

/// A reconcile that is about to read from the caches.
#[derive(Debug)]
pub struct ReconcileStart<'a> {
    /// The name of its controller.
    pub controller: &'static str,
    /// The key that it reconciles.
    pub key: &'a dyn fmt::Debug,
    /// The watches that fill the caches it reads.
    pub watches: &'a dyn ObservedWatches,
}
