//! The trial on trial: mistakes are planted into the code, and it has to find them.
//!
//! - [`table`]: which mistakes there are, committed before the run that counts;
//! - [`hunt`]: looks for each, makes what it finds small, and plays the same plans without it;
//! - [`replays`]: the same plan gives the same trace, whoever plays it, whenever, beside whom;
//! - [`coverage`]: every kind of fault strikes every workload that it can strike.

mod coverage;
mod hunt;
mod lanes;
mod replays;
mod report;
mod table;

use anyhow::Result;

use neap_replay::{cost, cost_of_others};

use crate::{Output, canary, stopwatch::Stopwatch, worker, workloads};
use report::{Report, Rest};

/// Whether the trial can be trusted. If `only` chooses some mistakes by their names, nothing else is
/// tried.
pub(crate) fn run(only: &str, seed: u64, output: Output) -> Result<bool> {
    let watch = Stopwatch::start();
    // Before there is any thread: it splits this process.
    let canary = canary::dies(&worker::ground()?, seed)?;
    let bugs = table::read(only)?;
    eprintln!("looking for {} mistakes …", bugs.len());
    let (hunts, calm) = hunt::run(&bugs, seed)?;
    let rest = match only {
        "" => Some(rest(seed)?),
        _ => None,
    };
    let report = Report {
        canary,
        hunts,
        calm,
        rest,
        seconds: watch.elapsed().as_secs_f64(),
        core_seconds: (cost() + cost_of_others()).as_secs_f64(),
    };
    match output {
        Output::Text => println!("{report}"),
        Output::Json => println!("{}", serde_json::to_string_pretty(&report.told())?),
    }
    Ok(report.holds())
}

/// What has nothing to do with mistakes.
fn rest(seed: u64) -> Result<Rest> {
    let workloads = workloads();
    let names: Vec<_> = workloads.iter().map(|workload| workload.name).collect();
    eprintln!("playing plans again and again …");
    let replays = replays::run(&names, seed)?;
    eprintln!("letting every kind of fault strike every workload …");
    let coverage = coverage::run(&names, seed)?;
    Ok(Rest { replays, coverage })
}
