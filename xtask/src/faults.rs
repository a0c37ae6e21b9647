//! `cargo xtask faults`: every controller of the project through every fault.

use std::{fs::File, path::PathBuf, process::Command};

use anyhow::{Context, Result};
use clap::Args;

use crate::{process, test::Build};

#[derive(Debug, Args)]
pub(crate) struct Faults {
    /// How long to go on, such as 120s or 90m
    #[arg(long, default_value = "120s")]
    budget: String,
    /// Only workloads whose name has this in it; with --self-test, only such mistakes
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Where chances come from
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Plays the plans of this file, tells what passed, and judges it
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Only walks through declarations: every value of every property
    #[arg(long, conflicts_with = "starts")]
    walk: bool,
    /// Only plays start states
    #[arg(long)]
    starts: bool,
    /// With --walk or --starts: only the chain or the start state of this number
    #[arg(long, value_name = "N")]
    number: Option<u64>,
    /// Tests the trial itself: plants defects in the code and checks that each is detected
    #[arg(long)]
    self_test: bool,
    /// Fails also if a figure misses its limit, those of speed included
    #[arg(long)]
    figures: bool,
    /// Output format: text or json
    #[arg(short, long, default_value = "text")]
    output: String,
}

/// Plays; false if something went wrong.
pub(crate) fn run(faults: &Faults) -> Result<bool> {
    if let Some(file) = &faults.replay {
        // Before minutes of building.
        File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    }
    let mut command = if faults.self_test {
        seeded()?
    } else {
        build()?;
        program()
    };
    command.args(["--budget", &faults.budget, "--only", &faults.only]);
    command.args(["--seed", &faults.seed.to_string()]);
    command.args(["--output", &faults.output]);
    if let Some(file) = &faults.replay {
        command.arg("--replay").arg(file);
    }
    for (flag, is_set) in [
        ("--walk", faults.walk),
        ("--starts", faults.starts),
        ("--self-test", faults.self_test),
        ("--figures", faults.figures),
    ] {
        command.args(is_set.then_some(flag));
    }
    if let Some(number) = faults.number {
        command.args(["--number", &number.to_string()]);
    }
    Ok(command.status()?.success())
}

/// Builds the program that plays with mistakes to plant. It has a folder of its own, so that neither
/// is built anew because of the other.
fn seeded() -> Result<Command> {
    let build = ["build", "--profile", "faults", "--locked", "--quiet"];
    let package = ["--package", "neap-campaign", "--features", "seeded"];
    process::run(process::cargo().args(build).args(package))?;
    Ok(Command::new(
        process::root().join("target/faults/neap-campaign"),
    ))
}

/// The part that the test command plays: a minute, and at least 3,000 plans. False if something went wrong.
pub(crate) fn standing(build: &Build) -> Result<bool> {
    let mut command = Command::new(build.program("neap-campaign")?);
    let bounds = ["--budget", "60s", "--min-plans", "3000"];
    Ok(command.args(bounds).status()?.success())
}

/// Builds the campaign optimised, for runs of minutes and hours.
fn build() -> Result<()> {
    let build = ["build", "--release", "--locked"];
    let package = ["--package", "neap-campaign"];
    process::run(process::cargo().args(build).args(package))
}

fn program() -> Command {
    Command::new(process::root().join("target/release/neap-campaign"))
}
