//! Records panics, which controllers contain and tokio catches.

use std::{cell::RefCell, panic, sync::Once};

thread_local! {
    /// The panics of the run on this thread; none while no run is recorded.
    static RECORDED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Records panics of this thread from now on, and does not print them.
pub(crate) fn start_recording() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let outside = RECORDED.with_borrow_mut(|recorded| match recorded {
                Some(recorded) => {
                    recorded.push(panic.to_string());
                    false
                }
                None => true,
            });
            if outside {
                usual(panic);
            }
        }));
    });
    RECORDED.set(Some(Vec::new()));
}

/// Stops recording and returns the recorded panics.
pub(crate) fn take() -> Vec<String> {
    RECORDED.take().unwrap_or_default()
}
