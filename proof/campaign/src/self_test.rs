//! Tests the trial itself: mistakes are planted in the code, and it must find them.
//!
//! - [`table`]: the mistakes, committed before the run that counts;
//! - [`hunt`]: searches for each one, reduces what it finds, and plays the same plans without it;
//! - [`replays`]: the same plan produces the same trace, in any process, at any time, next to any
//!   plan;
//! - [`coverage`]: every kind of fault strikes every workload that it can strike.

mod coverage;
mod hunt;
mod parallel;
mod replays;
mod report;
mod table;

use anyhow::Result;

use neap_determinism::{children_cpu_time, cpu_time};

use crate::{Output, canary, stopwatch::Stopwatch, worker, workloads};
use report::{OtherChecks, SelfTestReport};

/// Whether the trial can be trusted. If `only` selects mistakes by name, nothing else is tested.
pub(crate) fn run(only: &str, seed: u64, output: Output) -> Result<bool> {
    let watch = Stopwatch::start();
    // Before there is any thread, because it forks this process.
    let canary = canary::is_caught(&worker::template()?, seed)?;
    let bugs = table::read(only)?;
    eprintln!("searching for {} mistakes …", bugs.len());
    let (hunts, calm) = hunt::run(&bugs, seed)?;
    let rest = match only {
        "" => Some(other_checks(seed)?),
        _ => None,
    };
    let report = SelfTestReport {
        canary,
        hunts,
        calm,
        rest,
        seconds: watch.elapsed().as_secs_f64(),
        core_seconds: (cpu_time() + children_cpu_time()).as_secs_f64(),
    };
    match output {
        Output::Text => println!("{report}"),
        Output::Json => println!("{}", serde_json::to_string_pretty(&report.json())?),
    }
    Ok(report.holds())
}

/// The checks that need no planted mistakes.
fn other_checks(seed: u64) -> Result<OtherChecks> {
    let workloads = workloads();
    let names: Vec<_> = workloads.iter().map(|workload| workload.name).collect();
    eprintln!("replaying plans …");
    let replays = replays::run(&names, seed)?;
    eprintln!("playing every kind of fault in every workload …");
    let coverage = coverage::run(&names, seed)?;
    Ok(OtherChecks { replays, coverage })
}
