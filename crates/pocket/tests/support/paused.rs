//! Time that passes only because a test says so.

use std::time::Duration;

/// Lets this much time pass on the paused clock, and everybody do what is due meanwhile. On a clock
/// that really goes it panics: no test waits.
pub(crate) async fn time_passes(duration: Duration) {
    // Only a paused clock can be moved.
    tokio::time::advance(Duration::ZERO).await;
    tokio::time::sleep(duration).await;
}
