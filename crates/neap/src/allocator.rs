//! How the memory allocator of the program takes memory from the system, and gives it back.
//!
//! mimalloc reads its options from the environment before `main`, and commits whole arenas unless it is
//! told otherwise: with many threads, these are tens of megabytes that nothing uses. A process that starts
//! without an option therefore replaces itself with the same program that has it.

use std::{
    env, hint::black_box, os::unix::process::CommandExt, process::Command, sync::Arc, thread,
    time::Duration,
};

use neap_pocket::environment::Clock;

/// What is committed is what is used.
const COMMIT_ON_USE: (&str, &str) = ("MIMALLOC_ARENA_EAGER_COMMIT", "0");
/// What is free is returned at once, and not when a thread next has something to do.
const RETURN_AT_ONCE: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "0");

/// How often a server returns what is free. The allocator keeps it for a second, for the next who asks.
const RETURN_INTERVAL: Duration = Duration::from_secs(2);

/// For servers: returns in a process that commits what it uses.
pub(crate) fn commit_what_is_used() {
    restart_with(&[COMMIT_ON_USE]);
}

/// For controllers with large caches, which read very much once and then little: returns in a process that
/// also returns what it has freed.
pub(crate) fn return_what_is_free() {
    restart_with(&[COMMIT_ON_USE, RETURN_AT_ONCE]);
}

/// Returns what is free also while no request arrives, for as long as it is polled.
pub(crate) async fn return_what_is_free_again_and_again(clock: Arc<dyn Clock>) {
    loop {
        clock.sleep(RETURN_INTERVAL).await;
        end_a_thread();
    }
}

/// Starts a thread that ends at once. The allocator returns what has been free for a while when a thread
/// frees a whole page, which does not happen in an idle process, and when a thread ends: for all threads.
fn end_a_thread() {
    // Only a thread that has allocated something has a part in the allocator.
    let started = thread::Builder::new()
        .name("return-memory".to_owned())
        .spawn(|| drop(black_box(Box::new(0_u8))));
    if let Err(error) = started {
        tracing::debug!(%error, "cannot start a thread, so memory is returned later");
    }
}

/// Returns in a process that has the options. A user who sets a variable keeps the choice. If the program
/// cannot be started again, it runs without: it only uses more memory.
fn restart_with(options: &[(&str, &str)]) {
    let missing: Vec<_> = options
        .iter()
        .copied()
        .filter(|(name, _)| env::var_os(name).is_none())
        .collect();
    if missing.is_empty() {
        return;
    }
    let Ok(program) = env::current_exe() else {
        return;
    };
    let error = Command::new(program)
        .args(env::args_os().skip(1))
        .envs(missing)
        .exec();
    tracing::warn!(%error, "the memory allocator keeps its defaults");
}
