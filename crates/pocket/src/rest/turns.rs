//! Things that are used one at a time, each under its name. What nobody uses or waits for is
//! forgotten.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{Mutex as Wait, OwnedMutexGuard};

/// Held by the one whose turn it is.
pub(crate) type Turn = OwnedMutexGuard<()>;

/// Whose turn it is, by what is used.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<Arc<str>, Arc<Wait<()>>>>);

impl Turns {
    /// Waits for a turn.
    pub(crate) async fn at(&self, what: &str) -> Turn {
        self.place(what).lock_owned().await
    }

    /// Where to wait. Places are handed out under the lock, so that one nobody else has is of no
    /// use to anybody.
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
    async fn what_nobody_uses_is_forgotten() {
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
