//! Configuration from files that may change while a controller runs.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::Notify;

/// A configuration as it was last loaded. Cheap to clone.
#[derive(Debug, Default)]
pub struct Reloaded<T>(Arc<Slot<T>>);

#[derive(Debug, Default)]
struct Slot<T> {
    current: RwLock<Arc<T>>,
    changed: Notify,
}

impl<T> Clone for Reloaded<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: PartialEq> Reloaded<T> {
    /// A configuration that may be replaced later.
    pub fn new(config: T) -> Self {
        Self(Arc::new(Slot {
            current: RwLock::new(Arc::new(config)),
            changed: Notify::new(),
        }))
    }

    /// The configuration now.
    pub fn get(&self) -> Arc<T> {
        self.0.current.read().clone()
    }

    /// Replaces the configuration; whether it differs from before.
    pub fn replace(&self, config: T) -> bool {
        let mut current = self.0.current.write();
        let differs = **current != config;
        if differs {
            *current = Arc::new(config);
            self.0.changed.notify_one();
        }
        differs
    }

    /// Resolves once the configuration has changed since the last call. There is one caller.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn who_waits_is_told_of_a_difference_and_of_nothing_else() {
        let config = Reloaded::new(1);
        let loaded = config.clone();
        assert!(!loaded.replace(1));
        assert_eq!(config.changed().now_or_never(), None);
        assert!(loaded.replace(2));
        assert_eq!(config.changed().now_or_never(), Some(()));
        assert_eq!(*config.get(), 2);
        assert_eq!(config.changed().now_or_never(), None);
    }
}
