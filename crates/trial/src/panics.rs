//! Remembers panics, which controllers contain and tokio catches.

use std::{cell::RefCell, panic, sync::Once};

thread_local! {
    /// Those of the run on this thread; nothing if there is none.
    static SEEN: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// From now on panics of this thread are remembered, and not printed.
pub(crate) fn listen() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let outside = SEEN.with_borrow_mut(|seen| match seen {
                Some(seen) => {
                    seen.push(panic.to_string());
                    false
                }
                None => true,
            });
            if outside {
                usual(panic);
            }
        }));
    });
    SEEN.set(Some(Vec::new()));
}

/// The panics of this thread since it listens; it does no longer.
pub(crate) fn take() -> Vec<String> {
    SEEN.take().unwrap_or_default()
}
