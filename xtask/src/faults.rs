//! `cargo xtask faults`: every controller of the house through every fault.

use std::{path::PathBuf, process::Command};

use anyhow::Result;
use clap::Args;

use crate::process;

#[derive(Debug, Args)]
pub(crate) struct Faults {
    /// How long to go on, such as 120s or 90m
    #[arg(long, default_value = "120s")]
    budget: String,
    /// Only workloads whose name has this in it
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Where chances come from
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Plays the plans of this file, tells what passed, and judges it
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Tries the trial itself: plants mistakes into the code, and asks whether they are found
    #[arg(long)]
    self_test: bool,
    /// How to print what came of it: text or json
    #[arg(short, long, default_value = "text")]
    output: String,
}

/// Plays; false if something went wrong.
pub(crate) fn run(faults: &Faults) -> Result<bool> {
    let mut command = Command::new(build(faults.self_test)?);
    command.args(["--budget", &faults.budget, "--only", &faults.only]);
    command.args(["--seed", &faults.seed.to_string()]);
    command.args(["--output", &faults.output]);
    if let Some(file) = &faults.replay {
        command.arg("--replay").arg(file);
    }
    if faults.self_test {
        command.arg("--self-test");
    }
    Ok(command.status()?.success())
}

/// Builds what plays; with mistakes to plant in a folder of their own, so that neither is built
/// anew because of the other.
fn build(seeded: bool) -> Result<PathBuf> {
    let (profile, features) = if seeded {
        ("faults", &["--features", "seeded"][..])
    } else {
        ("release", &[][..])
    };
    let mut cargo = process::cargo();
    cargo.args(["build", "--locked", "--quiet", "--package", "neap-faults"]);
    process::run(cargo.args(["--profile", profile]).args(features))?;
    let folder = process::root().join("target").join(profile);
    Ok(folder.join("neap-faults"))
}
