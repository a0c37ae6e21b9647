//! `cargo xtask test`: the test command. Sets up what the tests need, runs them all, counts them, and says
//! where its time went.
//!
//! Tests, campaigns and the `neap` that they start come from one build with one selection of packages
//! and features, so nothing is compiled twice.

mod build;
mod clients;
mod executables;
mod stages;
pub(crate) mod tally;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

pub(crate) use self::build::Build;
use self::{clients::Client, stages::Stages, tally::Tally};
use crate::{check, faults, loss, process};

/// Runs everything; true if all holds.
pub(crate) fn run(with_check: bool, arguments: &[String]) -> Result<bool> {
    let mut stages = Stages::start();
    let checked = if with_check {
        println!("check");
        stages.time("check", || check::run(None, ""))?
    } else {
        true
    };
    println!("set up");
    let clients = stages.time("set up", clients::set_up);
    println!("build");
    let build = stages.time("build", || build::build(arguments))?;
    let environment = Environment::new(&build, clients)?;

    println!("test");
    let mut tally = if arguments.is_empty() {
        let tests = || executables::run(&build.executables, &environment);
        let mut tally = stages.time("test", tests)?;
        println!("documentation tests");
        let documentation = ["test", "--doc", "--workspace"].map(str::to_owned);
        let doc_tests = || cargo_test(&documentation, &environment);
        tally.join(stages.time("documentation tests", doc_tests)?);
        tally
    } else {
        let all = ["test", "--workspace"].map(str::to_owned);
        stages.time("test", || {
            cargo_test(&[&all, arguments].concat(), &environment)
        })?
    };
    tally.add_skips(&fs::read_to_string(&environment.skips)?);

    let played = if arguments.is_empty() {
        stages.time("campaigns", || campaigns(&build))?
    } else {
        println!("campaigns: not played, since only some tests were asked for");
        true
    };
    if !checked {
        println!(" ✗ a check failed: see the top");
    }
    if !played {
        println!(" ✗ a campaign failed: see above");
    }
    stages.print();
    tally.print(stages.total());
    let complete = tally.skipped.is_empty() || !in_ci();
    Ok(checked && tally.holds() && played && complete)
}

/// Plays the standing part of every campaign; true if all hold. The one with real processes plays alone:
/// it runs in real time, and a machine without CPU to spare loses requests as a node of a cluster would.
fn campaigns(build: &Build) -> Result<bool> {
    println!("faults");
    let faultless = faults::standing(build);
    println!("lost requests, in memory");
    let lossless = loss::standing(build);
    println!("lost requests, with real processes");
    let real = loss::standing_real(build);
    Ok(faultless? && lossless? && real?)
}

/// What tests find in their environment.
struct Environment {
    clients: Vec<Client>,
    neap: PathBuf,
    /// Tests that cannot run here are named in this file.
    skips: PathBuf,
}

impl Environment {
    fn new(build: &Build, clients: Vec<Client>) -> Result<Self> {
        let skips = process::root().join("target/skipped-tests");
        fs::write(&skips, "").context("cannot write target/skipped-tests")?;
        Ok(Self {
            clients,
            neap: build.program("neap")?.to_owned(),
            skips,
        })
    }

    fn apply(&self, command: &mut Command) {
        command.env("NEAP_BIN", &self.neap);
        command.env("NEAP_SKIPS", &self.skips);
        for Client { variable, path } in &self.clients {
            match path {
                Some(path) => command.env(variable, path),
                None => command.env_remove(variable),
            };
        }
    }
}

/// Whether a skipped test is a failure.
fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// Runs cargo with `arguments`, shows what it prints, and counts.
fn cargo_test(arguments: &[String], environment: &Environment) -> Result<Tally> {
    let mut command = process::cargo();
    command
        .args(arguments)
        .args(["--locked", "--no-fail-fast"])
        .stdout(Stdio::piped());
    environment.apply(&mut command);
    let mut child = command.spawn().context("cannot run cargo test")?;
    let stdout = child.stdout.take().context("cargo test has no output")?;
    let mut tally = Tally::default();
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        println!("{line}");
        tally.add(&line);
    }
    if !child.wait()?.success() && tally.failed.is_empty() {
        tally
            .failed
            .push("cargo test failed outside of a test: see above".to_owned());
    }
    Ok(tally)
}

/// A path below the workspace without the workspace.
fn shown(path: &Path) -> String {
    let inside = path.strip_prefix(process::root()).unwrap_or(path);
    inside.display().to_string()
}
