//! How the server's memory allocator takes memory from the system.
//!
//! mimalloc reads its options from the environment before `main`, and commits whole arenas unless it is
//! told otherwise: with many threads, these are tens of megabytes that nothing uses. A server that starts
//! without the option therefore replaces itself with the same program that has it.

use std::{env, os::unix::process::CommandExt, process::Command};

/// What is committed is what is used. A user who sets the variable keeps the choice.
const OPTION: (&str, &str) = ("MIMALLOC_ARENA_EAGER_COMMIT", "0");

/// Returns in a process that has the option. If the program cannot be started again, the server runs
/// without: it only uses more memory.
pub(super) fn commit_what_is_used() {
    let (name, value) = OPTION;
    if env::var_os(name).is_some() {
        return;
    }
    let Ok(program) = env::current_exe() else {
        return;
    };
    let error = Command::new(program)
        .args(env::args_os().skip(1))
        .env(name, value)
        .exec();
    tracing::warn!(%error, "the memory allocator keeps its defaults");
}
