//! Compares recordings of scenario files; run through `cargo xtask differential`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks"
)]

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Parser;
use neap_api_conformance::{permitted, recordings};

/// Compares the responses of two servers to the same scenario files
#[derive(Debug, Parser)]
struct Cli {
    /// The folder with the real server's recordings
    #[arg(long, value_name = "DIR")]
    reference: PathBuf,
    /// The folder with ours
    #[arg(long, value_name = "DIR")]
    pocket: PathBuf,
}

fn main() -> ExitCode {
    match go(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("✗ {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns false if a difference is not permitted, a recording is missing, or an entry is no longer
/// needed.
fn go(cli: &Cli) -> Result<bool> {
    let entries = permitted::scenario_entries()?;
    let found = recordings::compare_folders(&cli.reference, &cli.pocket)?;
    let mut used = vec![0_usize; entries.len()];
    let mut open = 0;
    for located in &found.differences {
        if let Some(entry) = permitted::allowing(&entries, &located.kind, &located.difference) {
            used[entry] += 1;
            continue;
        }
        open += 1;
        let difference = &located.difference;
        println!(
            "{} {}: {}: {}",
            located.place, located.kind, difference.field, difference.rule
        );
    }
    let allowed = found.differences.len() - open;
    println!(
        "{} scenario files, {} answers and events compared, {open} differences, {allowed} allowed by {} entries",
        found.files,
        found.compared,
        entries.len()
    );
    for scenario in &found.unpaired {
        println!("{scenario}.md: only one of the two has a recording");
    }
    let mut stale = false;
    for (entry, _) in entries.iter().zip(&used).filter(|(_, used)| **used == 0) {
        println!(
            "no longer differs: {} {}: {}",
            entry.kind, entry.field, entry.rule
        );
        stale = true;
    }
    Ok(open == 0 && !stale && found.unpaired.is_empty())
}
