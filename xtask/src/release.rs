//! `cargo xtask release`: ImageStreams on a real kube-apiserver.

use std::process::Command;

use anyhow::Result;

use crate::{process, stopwatch::Stopwatch, tools};

const TEST: [&str; 6] = [
    "test",
    "--locked",
    "--package",
    "neap-release",
    "--test",
    "imports_on_a_server",
];

/// Runs the tests; false if one fails.
pub(crate) fn run(only: &str) -> Result<bool> {
    let reference = tools::reference()?;
    println!("building the tests and what starts the server");
    let build = ["build", "--locked", "--quiet", "--package", "neap-load"];
    process::run(process::cargo().args(build))?;
    process::run(process::cargo().args(TEST).arg("--no-run"))?;
    let watch = Stopwatch::start();
    let mut beside = Command::new(process::root().join("target/debug/neap-load"));
    beside
        .arg("beside")
        .arg("--reference")
        .arg(reference)
        .args(["--told-in", "NEAP_RELEASE_SERVER", "--"])
        .arg(process::cargo().get_program())
        .args(TEST)
        .arg(only)
        .current_dir(process::root());
    let holds = beside.status()?.success();
    let mark = if holds { '✓' } else { '✗' };
    println!(" {mark} imports of ImageStreams on a real server in {watch}");
    Ok(holds)
}
