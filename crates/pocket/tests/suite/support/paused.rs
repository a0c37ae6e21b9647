//! Explicit passage of time on a paused clock.

use std::time::Duration;

/// Lets this much time pass on the paused clock, and all tasks do what is due meanwhile. On a real
/// clock it panics: no test waits.
pub(crate) async fn time_passes(duration: Duration) {
    // Only a paused clock can be advanced.
    tokio::time::advance(Duration::ZERO).await;
    tokio::time::sleep(duration).await;
}
