//! `neap version`.

use std::io::Write;

use serde_json::{Value, json};

use crate::{cli::Output, exit::Failure, inspect::print};

/// The version of this binary.
pub(crate) const NEAP: &str = env!("CARGO_PKG_VERSION");
/// The Kubernetes release whose API this binary serves.
pub(crate) const KUBERNETES: &str = "v1.36.3";
/// The commit this binary was built from, if the build could determine it.
const COMMIT: Option<&str> = option_env!("NEAP_COMMIT");

/// Writes the versions as text or for programs.
pub(crate) fn print(output: Output, out: &mut dyn Write) -> Result<(), Failure> {
    match output.data() {
        None => print::text(out, &text()),
        Some(format) => print::data(out, format, "Version", &fields()),
    }
}

fn text() -> String {
    let commit = COMMIT.map_or(String::new(), |commit| format!(" ({commit})"));
    format!("neap {NEAP}{commit}\nKubernetes {KUBERNETES}")
}

fn fields() -> Value {
    let mut version = json!({"version": NEAP, "kubernetes": KUBERNETES});
    if let Some(commit) = COMMIT {
        version["commit"] = commit.into();
    }
    version
}
