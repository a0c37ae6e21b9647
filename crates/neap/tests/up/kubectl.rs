//! The kubectl that `cargo xtask test` found or built.
//!
//! A test that needs it and has none says so in the file that `NEAP_SKIPS` names, so that it is
//! counted as skipped and not as passed.

use std::{
    fs::File,
    io::Write,
    path::Path,
    process::{Command, Output},
};

/// Runs kubectl with the kubeconfig; `None`, and a word about it, if there is no kubectl.
pub(crate) fn kubectl(test: &str, kubeconfig: &Path, arguments: &[&str]) -> Option<Output> {
    let Some(program) = std::env::var_os("NEAP_KUBECTL") else {
        skip(test, "NEAP_KUBECTL is not set; run cargo xtask test");
        return None;
    };
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(kubeconfig).args(arguments);
    Some(command.output().unwrap())
}

fn skip(test: &str, why: &str) {
    if let Some(path) = std::env::var_os("NEAP_SKIPS") {
        let mut file = File::options().append(true).open(path).unwrap();
        // One write, so that lines of tests that run at the same time do not mix.
        file.write_all(format!("SKIPPED {test}: {why}\n").as_bytes())
            .unwrap();
    }
}
