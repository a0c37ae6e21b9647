//! Named locks. A lock that is neither held nor waited for is dropped.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{Mutex as Wait, OwnedMutexGuard};

/// The guard of a lock.
pub(crate) type Turn = OwnedMutexGuard<()>;

/// The locks by name.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<Arc<str>, Arc<Wait<()>>>>);

impl Turns {
    /// Waits for the lock `what`.
    pub(crate) async fn at(&self, what: &str) -> Turn {
        self.place(what).lock_owned().await
    }

    /// The lock to wait for. Locks are handed out under the map's lock, so that one with no other
    /// reference can be dropped safely.
    fn place(&self, what: &str) -> Arc<Wait<()>> {
        let mut places = self.0.lock();
        if let Some(place) = places.get(what) {
            return place.clone();
        }
        places.retain(|_, place| Arc::strong_count(place) > 1);
        places.entry(what.into()).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn an_unused_lock_is_dropped() {
        let turns = Turns::default();
        for i in 0..100 {
            drop(turns.at(&i.to_string()).await);
        }
        assert_eq!(turns.0.lock().len(), 1);
    }

    #[tokio::test]
    async fn who_holds_or_waits_is_not_forgotten() {
        let turns = Turns::default();
        let first = turns.at("a").await;
        let mut second = Box::pin(turns.at("a"));
        assert!((&mut second).now_or_never().is_none());
        drop(turns.at("b").await);
        assert!(turns.at("a").now_or_never().is_none());
        drop(first);
        drop(turns.at("c").await);
        assert!(second.now_or_never().is_some());
    }
}
