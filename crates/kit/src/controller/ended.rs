//! A key between the end of its reconcile and the moment it may be looked at again.

use std::{sync::Arc, time::Duration};

use super::Outcome;
use crate::{clock::Clock, echo::Own};

/// A key whose reconcile has ended, and what is to become of it.
pub(super) struct Ended<K> {
    pub(super) key: K,
    pub(super) next: Later,
    pub(super) own: Arc<Own>,
}

/// What is to become of a key.
pub(super) enum Later {
    /// Its reconcile did not fail.
    Well(Outcome),
    /// The lead was lost on the way.
    PutBack,
    Failed,
}

impl<K> Ended<K> {
    /// The same once the watches show what was written; whether they did in time.
    pub(super) async fn shown(self, clock: Clock, limit: Duration) -> (Self, bool) {
        let shown = self.own.shown(clock, limit).await;
        (self, shown)
    }
}
