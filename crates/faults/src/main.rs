//! Every controller of the house under trial, as one campaign.
//!
//! [`campaign`] makes plans and hands them to [`worker`] processes, one for each core: a run splits
//! its process in two where a fault strikes, which only a process with one thread can do.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks"
)]

mod campaign;
mod kit;
mod message;
mod replay;
mod report;
mod stopwatch;
mod supply;
mod worker;
mod world;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use neap_trial::Workload;

/// Runs make and drop small objects all the time, in one thread.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Plays every controller through every fault, and names what goes wrong.
#[derive(Debug, Parser)]
#[command(name = "neap-faults")]
struct Cli {
    /// How long to go on, such as 120s or 90m
    #[arg(long, default_value = "120s", value_parser = span)]
    budget: Duration,
    /// Only workloads whose name has this in it
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Where chances come from
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Plays the plans of this file, tells what passed, and judges it
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// How to print what came of it
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Plays what it is told to on standard input
    #[arg(long, hide = true)]
    work: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    Text,
    /// For programs
    Json,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("✗ {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether nothing went wrong.
fn run(cli: &Cli) -> Result<bool> {
    // Before anything that takes its order from chance.
    neap_replay::entropy::seed(0);
    if cli.work {
        worker::run()?;
        return Ok(true);
    }
    if let Some(file) = &cli.replay {
        return replay::run(file);
    }
    let mut chosen = workloads();
    let names: Vec<_> = chosen.iter().map(|workload| workload.name).collect();
    chosen.retain(|workload| workload.name.contains(&cli.only));
    if chosen.is_empty() {
        bail!(
            "no workload has {:?} in its name; there are {}",
            cli.only,
            names.join(", ")
        );
    }
    let report = campaign::run(&chosen, cli.budget, cli.seed)?;
    match cli.output {
        Output::Text => println!("{report}"),
        Output::Json => println!("{}", serde_json::to_string_pretty(&report)?),
    }
    Ok(report.holds())
}

/// Everything that is under trial.
fn workloads() -> Vec<Workload> {
    let mut all = kit::workloads();
    all.extend(world::workloads());
    all
}

fn span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is no time; write 120s or 90m");
    let (number, seconds) = match text.strip_suffix('m') {
        Some(number) => (number, 60),
        None => (text.strip_suffix('s').ok_or_else(wrong)?, 1),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(number * seconds))
}
