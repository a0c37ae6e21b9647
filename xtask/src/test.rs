//! `cargo xtask test`: the test command. Sets up what the tests need, runs them all, and counts.

mod clients;
pub(crate) mod tally;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
};

use anyhow::{Context, Result};

use self::{clients::Client, tally::Tally};
use crate::{check, faults, loss, process, stopwatch::Stopwatch};

/// Runs everything; true if all holds.
pub(crate) fn run(with_check: bool, arguments: &[String]) -> Result<bool> {
    let watch = Stopwatch::start();
    let checked = if with_check {
        println!("check");
        check::run(None)?
    } else {
        true
    };
    println!("set up");
    let clients = clients::set_up();
    faults::build()?;
    println!(" ✓ neap                 target/release/neap");

    println!("test");
    let skips = process::root().join("target/skipped-tests");
    fs::write(&skips, "").context("cannot write target/skipped-tests")?;
    let (mut tally, built) = cargo_test(&clients, &skips, arguments)?;
    tally.add_skips(&fs::read_to_string(&skips)?);
    let all = arguments.is_empty();
    let faultless = played("faults", all, faults::standing)?;
    let lossless = played("loss", all, loss::standing)?;
    let really = played("loss, with real processes", all, loss::standing_real)?;
    let lossless = lossless && really;
    for (holds, wrong) in [
        (checked, "a check failed: see the top"),
        (faultless, "a fault broke something: see above"),
        (
            lossless,
            "a request was lost or sent twice, or not all was played: see above",
        ),
    ] {
        if !holds {
            println!(" ✗ {wrong}");
        }
    }
    print_tally(&tally, built, watch);
    let complete = tally.skipped.is_empty() || !in_ci();
    Ok(checked && built && tally.failed.is_empty() && faultless && lossless && complete)
}

/// What is played besides the tests, if `all` were asked for; true if it holds.
fn played(name: &str, all: bool, play: impl FnOnce() -> Result<bool>) -> Result<bool> {
    if all {
        println!("{name}");
        return play();
    }
    println!("{name}: not played, since only some tests were asked for");
    Ok(true)
}

/// Somebody relies on every test having run.
fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// Runs `cargo test`, shows what it prints, and counts. False if it failed.
fn cargo_test(clients: &[Client], skips: &Path, arguments: &[String]) -> Result<(Tally, bool)> {
    let mut command = process::cargo();
    command
        .args(["test", "--workspace", "--locked", "--no-fail-fast"])
        .args(arguments)
        .env("NEAP_BIN", process::root().join("target/release/neap"))
        .env("NEAP_SKIPS", skips)
        .stdout(Stdio::piped());
    for Client { variable, path } in clients {
        match path {
            Some(path) => command.env(variable, path),
            None => command.env_remove(variable),
        };
    }
    let mut child = command.spawn().context("cannot run cargo test")?;
    let stdout = child.stdout.take().context("cargo test has no output")?;
    let mut tally = Tally::default();
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        println!("{line}");
        tally.add(&line);
    }
    Ok((tally, child.wait()?.success()))
}

fn print_tally(tally: &Tally, succeeded: bool, watch: Stopwatch) {
    for name in &tally.failed {
        println!(" ✗ {name}");
    }
    for skip in &tally.skipped {
        println!(" ! skipped {skip}");
    }
    if !succeeded && tally.failed.is_empty() {
        println!(" ✗ cargo test failed outside of a test: see above");
    }
    println!(
        "{} passed, {} failed, {} skipped in {watch}",
        tally.passed,
        tally.failed.len(),
        tally.skipped.len()
    );
}
