//! What tests that need more than the sources find in their environment.

use std::{env, fs::File, io::Write, path::PathBuf};

/// The release build that `cargo xtask test` made. Without it the test is skipped, and named in
/// the file that `NEAP_SKIPS` names, so that nobody counts it as passed.
pub fn release_build(test: &str) -> Option<PathBuf> {
    if let Some(neap) = env::var_os("NEAP_BIN") {
        return Some(neap.into());
    }
    skipped(test, "NEAP_BIN is not set; run cargo xtask test");
    None
}

/// Names a test that is skipped, and why, in the file that `NEAP_SKIPS` names.
pub fn skipped(test: &str, reason: &str) {
    if let Some(path) = env::var_os("NEAP_SKIPS")
        && let Ok(mut file) = File::options().append(true).open(path)
    {
        let line = format!("SKIPPED {test}: {reason}\n");
        // One write, so that lines of tests that run at the same time do not mix; a file that
        // cannot be written shows in the count of tests.
        let _ = file.write_all(line.as_bytes());
    }
}
