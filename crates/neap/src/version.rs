//! `neap version`.

use std::io::Write;

use serde_json::json;

use crate::{cli::Output, exit::Failure};

/// The version of this binary.
pub(crate) const NEAP: &str = env!("CARGO_PKG_VERSION");
/// The Kubernetes release whose API this binary serves.
pub(crate) const KUBERNETES: &str = "v1.36.3";
/// The commit this binary was built from, if the build could determine it.
const COMMIT: Option<&str> = option_env!("NEAP_COMMIT");

/// Writes the versions as text or as JSON.
pub(crate) fn print(output: Output, out: &mut dyn Write) -> Result<(), Failure> {
    let text = match output {
        Output::Text => text(),
        Output::Json => json(),
    };
    writeln!(out, "{text}").map_err(|error| Failure::output(&error))
}

fn text() -> String {
    let commit = COMMIT.map_or(String::new(), |commit| format!(" ({commit})"));
    format!("neap {NEAP}{commit}\nKubernetes {KUBERNETES}")
}

fn json() -> String {
    let mut version = json!({
        "apiVersion": "neaptide.dev/v1alpha1",
        "kind": "Version",
        "version": NEAP,
        "kubernetes": KUBERNETES,
    });
    if let Some(commit) = COMMIT {
        version["commit"] = commit.into();
    }
    format!("{version:#}")
}
