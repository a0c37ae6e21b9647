//! Remembers panics, which controllers contain and tokio catches.

use std::{cell::RefCell, panic, sync::Once};

thread_local! {
    static SEEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// From now on panics are remembered, and nothing is printed.
pub(crate) fn listen() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        panic::set_hook(Box::new(|panic| {
            SEEN.with_borrow_mut(|seen| seen.push(panic.to_string()));
        }));
    });
}

/// The panics of this thread since it was last asked.
pub(crate) fn take() -> Vec<String> {
    SEEN.take()
}
