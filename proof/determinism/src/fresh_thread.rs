//! Work whose result does not depend on what its process did before.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use crate::entropy;

static WAITING: AtomicUsize = AtomicUsize::new(0);

/// The number of threads that only wait for another to end.
pub(crate) fn waiting() -> usize {
    WAITING.load(Ordering::Relaxed)
}

/// Called in a forked process, which has only the thread that forked it.
pub(crate) fn forked() {
    WAITING.store(0, Ordering::Relaxed);
}

/// Runs `work` in a new thread with entropy from `seed`; returns nothing if it panics.
///
/// Hash maps take their keys from a number that their thread draws once and increments with every
/// map: only in a new thread is it independent of what was done before. The delays before a watch
/// is reopened come from `fastrand`, which would otherwise be seeded with the time of day.
pub fn in_fresh_thread<T: Send>(seed: u64, work: impl FnOnce() -> T + Send) -> Option<T> {
    entropy::seed(seed);
    WAITING.fetch_add(1, Ordering::Relaxed);
    let work = || {
        fastrand::seed(seed);
        work()
    };
    let done = thread::scope(|scope| scope.spawn(work).join().ok());
    WAITING.fetch_sub(1, Ordering::Relaxed);
    done
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, RandomState};

    use super::*;

    #[test]
    fn maps_are_the_same_whatever_was_before() {
        let hashed = || in_fresh_thread(1, || RandomState::new().hash_one(1));
        let first = hashed();
        let _another = RandomState::new();
        assert_eq!(first, hashed());
        assert_ne!(first, in_fresh_thread(2, || RandomState::new().hash_one(1)));
    }
}
