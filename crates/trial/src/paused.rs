//! Where runs are played.

use std::io;

/// What `work` comes to on a runtime of its own, under a paused clock and in this thread alone.
pub fn paused<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    Ok(runtime.block_on(work))
}
