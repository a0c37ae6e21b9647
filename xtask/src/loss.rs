//! `cargo xtask loss`: services that fall asleep and wake under load, and every request that is lost.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::Result;
use clap::Args;

use crate::{bench::Output, process, test::Build};

#[derive(Debug, Args)]
pub(crate) struct Loss {
    /// How often the service of each cell falls asleep and wakes [default: 1000, and 10 with --real]
    #[arg(long)]
    cycles: Option<u64>,
    /// With real processes, in real time
    #[arg(long, conflicts_with = "budget")]
    real: bool,
    /// Only this cell, as LAG,RATE,PROTOCOL, such as 5,50,http1; may be given several times
    #[arg(long, value_name = "CELL")]
    cell: Vec<String>,
    /// Only the cells whose data plane lags by this many seconds; may be given several times
    #[arg(long, value_name = "SECONDS", conflicts_with = "cell")]
    lag: Vec<u64>,
    /// Time limit in seconds; cells whose cycles take long get fewer of them
    #[arg(long, value_name = "SECONDS")]
    budget: Option<u64>,
    /// Seed of the random choices
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// How to print what came of it
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Plays; false if a request was lost or sent twice.
pub(crate) fn run(loss: &Loss) -> Result<bool> {
    let build = ["build", "--release", "--locked", "--quiet"];
    let packages = ["--package", "neap", "--package", "neap-traffic"];
    process::run(process::cargo().args(build).args(packages))?;
    let mut command = program();
    if loss.real {
        command.arg("--real").arg(neap());
    }
    if let Some(cycles) = loss.cycles {
        command.args(["--cycles", &cycles.to_string()]);
    }
    command.args(["--seed", &loss.seed.to_string()]);
    for cell in &loss.cell {
        command.args(["--cell", cell]);
    }
    for lag in &loss.lag {
        command.args(["--lag", &lag.to_string()]);
    }
    if let Some(budget) = loss.budget {
        command.args(["--budget", &budget.to_string()]);
    }
    if loss.output == Output::Json {
        command.args(["--output", "json"]);
    }
    Ok(command.status()?.success())
}

/// The part in memory that the test command plays: every cell, with as many of its 1,000 cycles as fit into
/// 40 seconds, and at least 200 cycles. [`run`] plays all of them. False if a request was lost or sent twice,
/// or fewer cycles were played.
pub(crate) fn standing(build: &Build) -> Result<bool> {
    let mut command = Command::new(build.program("neap-traffic")?);
    let bounds = ["--budget", "40", "--min-cycles", "200"];
    Ok(command.args(bounds).status()?.success())
}

/// The part with real processes: five cycles of every cell whose data plane lags for a second or not at
/// all. False if a request was lost or sent twice, or something was not played.
pub(crate) fn standing_real(build: &Build) -> Result<bool> {
    let mut command = Command::new(build.program("neap-traffic")?);
    command.arg("--real").arg(build.program("neap")?);
    command.args(["--cycles", "5", "--lag", "0", "--lag", "1"]);
    Ok(command.stdin(Stdio::null()).status()?.success())
}

fn program() -> Command {
    Command::new(process::root().join("target/release/neap-traffic"))
}

fn neap() -> PathBuf {
    process::root().join("target/release/neap")
}
