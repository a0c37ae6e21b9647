//! `cargo xtask streams`: streams of releases on a real kube-apiserver.

use std::process::Command;

use anyhow::Result;

use crate::{process, stopwatch::Stopwatch, tools};

const TEST: [&str; 5] = [
    "test",
    "--locked",
    "--workspace",
    "--test",
    "releases_on_a_server",
];

/// Runs them; false if something fails.
pub(crate) fn run(only: &str) -> Result<bool> {
    let reference = tools::reference()?;
    println!("building neap, the tests and what starts the server");
    let programs = ["build", "--locked", "--quiet", "--workspace"];
    let programs = programs
        .into_iter()
        .chain(["--bin", "neap", "--bin", "neap-load"]);
    process::run(process::cargo().args(programs))?;
    process::run(process::cargo().args(TEST).arg("--no-run"))?;
    let watch = Stopwatch::start();
    let mut beside = Command::new(process::root().join("target/debug/neap-load"));
    beside
        .arg("beside")
        .arg("--reference")
        .arg(&reference)
        .args(["--told-in", "NEAP_RELEASE_SERVER", "--"])
        .arg(process::cargo().get_program())
        .args(TEST)
        .arg(only)
        .current_dir(process::root());
    let holds = beside.status()?.success();
    let mark = if holds { '✓' } else { '✗' };
    println!(" {mark} streams of releases on a real server in {watch}");
    Ok(holds)
}
