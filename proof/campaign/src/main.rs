//! Plays the workloads of all controllers as one campaign.
//!
//! [`campaign`] generates plans and sends them to [`worker`] processes, one for each core: a run
//! forks where a fault strikes, which only a process with one thread can do.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks"
)]

mod campaign;
mod canary;
mod extra_runs;
mod kit;
mod plan_queue;
mod protocol;
mod replay;
mod report;
mod self_test;
mod start_states;
mod stopwatch;
mod walk;
mod worker;
#[cfg(test)]
mod workload_coverage;
mod world;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use neap_trial::Workload;

use self::{
    campaign::Bounds,
    extra_runs::{ExtraRuns, Focus},
};

/// Runs create and drop small objects all the time, in one thread.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Plays every controller through every fault, and reports what goes wrong
#[derive(Debug, Parser)]
#[command(name = "neap-campaign")]
struct Cli {
    /// Time budget, such as 120s or 90m
    #[arg(long, default_value = "120s", value_parser = span)]
    budget: Duration,
    /// Goes on after the time budget until this many plans were played
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_plans: usize,
    /// Only workloads whose name contains this; with --self-test, only such mistakes
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Plays the plans of this file, prints their traces, and judges them
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Tests the trial itself: plants mistakes, and checks that they are found
    #[arg(long)]
    self_test: bool,
    /// Only walks through declarations: every value of every property
    #[arg(long, conflicts_with = "starts")]
    walk: bool,
    /// Only plays start states
    #[arg(long)]
    starts: bool,
    /// With --walk or --starts: only the chain or the start state with this number
    #[arg(long, value_name = "N")]
    number: Option<u64>,
    /// Fails unless every figure meets its requirement, including those of speed
    #[arg(long)]
    figures: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Plays the requests that it reads from standard input
    #[arg(long, hide = true)]
    work: bool,
}

impl Cli {
    fn focus(&self) -> Focus {
        match (self.walk, self.starts) {
            (true, _) => Focus::Walk,
            (_, true) => Focus::StartStates,
            _ => Focus::Plans,
        }
    }
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
    // Before anything whose order depends on random numbers.
    neap_determinism::entropy::seed(0);
    if cli.work {
        worker::run()?;
        return Ok(true);
    }
    if let Some(file) = &cli.replay {
        return replay::run(file);
    }
    if cli.self_test {
        return self_test::run(&cli.only, cli.seed, cli.output);
    }
    let mut chosen = workloads();
    let names: Vec<_> = chosen.iter().map(|workload| workload.name).collect();
    chosen.retain(|workload| workload.name.contains(&cli.only));
    if cli.only.is_empty() && cli.budget < LONG_CAMPAIGN {
        chosen.retain(|workload| !is_long(workload));
    }
    if chosen.is_empty() && !cli.walk {
        bail!(
            "no workload has {:?} in its name; there are {}",
            cli.only,
            names.join(", ")
        );
    }
    let extra_runs = ExtraRuns::new(&chosen, &cli.only, cli.focus(), cli.number)?;
    let report = campaign::run(
        &chosen,
        Bounds {
            budget: cli.budget,
            min_plans: cli.min_plans,
        },
        cli.seed,
        extra_runs,
    )?;
    match cli.output {
        Output::Text => println!("{report}"),
        Output::Json => println!("{}", serde_json::to_string_pretty(&report)?),
    }
    Ok(report.holds() && (!cli.figures || report.is_met()))
}

fn workloads() -> Vec<Workload> {
    let mut all = kit::workloads();
    all.extend(world::workloads());
    all.extend(neap_release_trial::workloads());
    all.extend(neap_farm_trial::workloads());
    all.extend(neap_release_trial::long_workloads());
    all
}

/// The budget from which workloads join whose plans take long. A shorter campaign plays them if it names them; else
/// it would play little but them.
const LONG_CAMPAIGN: Duration = Duration::from_mins(10);

/// Whether each of its plans takes as long as dozens of others.
fn is_long(workload: &Workload) -> bool {
    let mut long = neap_release_trial::long_workloads();
    long.extend(neap_farm_trial::workloads());
    long.iter().any(|it| it.name == workload.name)
}

fn span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is not a duration; write 120s or 90m");
    let (number, seconds) = match text.strip_suffix('m') {
        Some(number) => (number, 60),
        None => (text.strip_suffix('s').ok_or_else(wrong)?, 1),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(number * seconds))
}
