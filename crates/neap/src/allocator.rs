//! How the memory allocator of the program takes memory from the system, and gives it back.
//!
//! mimalloc reads its options from the environment before `main`, and commits whole arenas unless it is
//! told otherwise: with many threads, these are tens of megabytes that nothing uses. A process that starts
//! without an option therefore replaces itself with the same program that has it.

use std::{env, os::unix::process::CommandExt, process::Command};

/// What is committed is what is used.
const COMMIT_ON_USE: (&str, &str) = ("MIMALLOC_ARENA_EAGER_COMMIT", "0");
/// What is free is returned at once, and not when a thread next has something to do.
const RETURN_AT_ONCE: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "0");

/// For servers: returns in a process that commits what it uses.
pub(crate) fn commit_what_is_used() {
    restart_with(&[COMMIT_ON_USE]);
}

/// For controllers with large caches, which read very much once and then little: returns in a process that
/// also returns what it has freed.
pub(crate) fn return_what_is_free() {
    restart_with(&[COMMIT_ON_USE, RETURN_AT_ONCE]);
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
