//! The trial on trial: mistakes are planted into the code, and it has to find them.
//!
//! - [`table`]: which mistakes there are, written down before any of them is looked for;
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
use neap_trial::Workload;

use crate::{Output, canary, worker, workloads};
use report::Report;

/// Whether the trial can be trusted. `only` chooses mistakes by their names.
pub(crate) fn run(only: &str, seed: u64, output: Output) -> Result<bool> {
    // Before there is any thread: it splits this process.
    let canary = canary::dies(&worker::ground()?, seed)?;
    let bugs = table::read(only)?;
    let names: Vec<_> = workloads()
        .iter()
        .map(|workload: &Workload| workload.name)
        .collect();
    eprintln!("looking for {} mistakes …", bugs.len());
    let (hunts, calm) = hunt::run(&bugs, seed)?;
    eprintln!("playing plans again and again …");
    let replays = replays::run(&names, seed)?;
    eprintln!("letting every kind of fault strike every workload …");
    let coverage = coverage::run(&names, seed)?;
    let report = Report {
        canary,
        whole: only.is_empty(),
        hunts,
        calm,
        replays,
        coverage,
    };
    match output {
        Output::Text => println!("{report}"),
        Output::Json => println!("{}", serde_json::to_string_pretty(&report.told())?),
    }
    Ok(report.holds())
}
