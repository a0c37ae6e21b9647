//! `cargo xtask loss`: services that fall asleep and wake under load, and every request that is lost.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::{bench::Output, process};

#[derive(Debug, Args)]
pub(crate) struct Loss {
    /// How often the service of each cell falls asleep and wakes [default: 1000, and 10 with --real]
    #[arg(long)]
    cycles: Option<u64>,
    /// With real processes, in real time
    #[arg(long, conflicts_with = "budget")]
    real: bool,
    /// Only this one, as LAG,RATE,PROTOCOL, such as 5,50,http1; may be given several times
    #[arg(long, value_name = "CELL")]
    cell: Vec<String>,
    /// Ends after about so many seconds, with fewer cycles where they take long
    #[arg(long, value_name = "SECONDS")]
    budget: Option<u64>,
    /// Where chances come from
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// How to print what came of it
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Plays; false if a request was lost or sent twice.
pub(crate) fn run(loss: &Loss) -> Result<bool> {
    let build = ["build", "--release", "--locked", "--quiet"];
    let packages = ["--package", "neap", "--package", "neap-loss"];
    process::run(process::cargo().args(build).args(packages))?;
    let mut command = program();
    if loss.real {
        let neap = process::root().join("target/release/neap");
        command.arg("--real").arg(neap);
    }
    if let Some(cycles) = loss.cycles {
        command.args(["--cycles", &cycles.to_string()]);
    }
    command.args(["--seed", &loss.seed.to_string()]);
    for cell in &loss.cell {
        command.args(["--cell", cell]);
    }
    if let Some(budget) = loss.budget {
        command.args(["--budget", &budget.to_string()]);
    }
    if loss.output == Output::Json {
        command.args(["--output", "json"]);
    }
    Ok(command.status()?.success())
}

/// What the test command plays of it: a slice of a minute, every cell with as many of its 1,000
/// cycles as there is time for. [`run`] plays all of them. False if a request was lost or sent twice.
pub(crate) fn standing() -> Result<bool> {
    Ok(program().args(["--budget", "60"]).status()?.success())
}

fn program() -> Command {
    Command::new(process::root().join("target/release/neap-loss"))
}
