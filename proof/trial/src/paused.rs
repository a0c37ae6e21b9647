//! The runtime of a run.

use std::io;

/// Runs `work` on a new single-threaded runtime with a paused clock.
pub fn paused<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    Ok(runtime.block_on(work))
}
