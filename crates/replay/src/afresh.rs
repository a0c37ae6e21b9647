//! Work that does not depend on what its process did before.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use crate::entropy;

static WAITING: AtomicUsize = AtomicUsize::new(0);

/// How many threads wait for another to end, and do nothing else.
pub(crate) fn waiting() -> usize {
    WAITING.load(Ordering::Relaxed)
}

/// In a copy of a process there is nobody but the thread that made it.
pub(crate) fn alone() {
    WAITING.store(0, Ordering::Relaxed);
}

/// What `work` comes to in a new thread, with entropy from `seed`; nothing if it panics.
///
/// Hash maps take their keys from a number that their thread drew once and counts up with every map:
/// only in a new thread is it the same whatever was done before. The waits before a watch is opened
/// again come from `fastrand`, which would begin with the time of day.
pub fn afresh<T: Send>(seed: u64, work: impl FnOnce() -> T + Send) -> Option<T> {
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
        let hashed = || afresh(1, || RandomState::new().hash_one(1));
        let first = hashed();
        let _another = RandomState::new();
        assert_eq!(first, hashed());
        assert_ne!(first, afresh(2, || RandomState::new().hash_one(1)));
    }
}
