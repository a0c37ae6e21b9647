//! A key between the end of its reconcile and the moment it may be reconciled again.

use std::{sync::Arc, time::Duration};

use super::{FailureClass, Outcome};
use crate::{clock::Clock, own_writes::PendingWrites};

/// A key whose reconcile has ended, held back until the watches show what it wrote.
pub(super) struct FinishedReconcile<K> {
    pub(super) key: K,
    pub(super) disposition: Disposition,
    pub(super) pending: Arc<PendingWrites>,
}

/// What the queue does with the key.
pub(super) enum Disposition {
    /// The reconcile succeeded: requeue as its outcome says.
    Succeeded(Outcome),
    /// Leadership was lost during the reconcile: requeue at once.
    LostLeadership,
    /// The reconcile failed: requeue as the class says.
    Failed(FailureClass),
}

impl<K> FinishedReconcile<K> {
    /// Waits at most for `limit` until the watches show the writes, and returns whether they did.
    pub(super) async fn wait_observed(self, clock: Clock, limit: Duration) -> (Self, bool) {
        let observed = self.pending.wait_observed(clock, limit).await;
        (self, observed)
    }
}
