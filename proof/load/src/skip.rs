//! What tests that need more than the sources find in their environment.

use std::{env, fs::File, io::Write, path::PathBuf};

/// The release build of `cargo xtask test`. Without it the test is skipped, and listed in the file
/// that `NEAP_SKIPS` names, so that it does not count as passed.
pub fn release_build(test: &str) -> Option<PathBuf> {
    if let Some(neap) = env::var_os("NEAP_BIN") {
        return Some(neap.into());
    }
    skipped(test, "NEAP_BIN is not set; run cargo xtask test");
    None
}

/// Lists a skipped test, with the reason, in the file that `NEAP_SKIPS` names.
pub fn skipped(test: &str, reason: &str) {
    if let Some(path) = env::var_os("NEAP_SKIPS")
        && let Ok(mut file) = File::options().append(true).open(path)
    {
        let line = format!("SKIPPED {test}: {reason}\n");
        // One write, so that lines of concurrent tests do not mix; a file that cannot be written
        // shows in the count of tests.
        let _ = file.write_all(line.as_bytes());
    }
}
