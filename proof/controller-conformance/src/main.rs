//! Compares world's controllers with the real ones; run through `cargo xtask controllers`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks"
)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use neap_api_conformance::permitted::PermittedDifference;
use neap_controller_conformance::{
    judge::{self, Finding},
    normalize::MASKS,
    ours,
    play::Recording,
    scenario::{self, Scenario},
    theirs,
};

/// Replays of a differing scenario on the real controllers, whose result depends a little on the
/// age of their caches. Ours have the same result each time.
const REPLAYS: usize = 2;

/// Plays scenarios to world's controllers and to the real ones, and reports the differences
#[derive(Debug, Parser)]
struct Cli {
    /// The program of the real control plane
    #[arg(long, value_name = "FILE", required_unless_present = "recorded")]
    reference: Option<PathBuf>,
    /// A recording of the real control plane, used in its place
    #[arg(long, value_name = "FILE")]
    recorded: Option<PathBuf>,
    /// Where to record it
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Only scenarios whose name contains this; then unused entries are not reported
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Show whole values
    #[arg(short, long)]
    verbose: bool,
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

fn run(cli: &Cli) -> Result<bool> {
    let scenarios = scenario::all(&cli.only)?;
    let entries = judge::entries()?;
    let mut theirs: Recording = match (&cli.recorded, &cli.reference) {
        (Some(file), _) => serde_json::from_slice(&fs::read(file)?)?,
        (None, program) => play(program.as_deref().context("no reference")?, &scenarios)?,
    };
    for Scenario { name, .. } in &scenarios {
        ensure!(theirs.contains_key(name), "{name} is not in the recording");
    }
    theirs.retain(|name, _| scenarios.iter().any(|known| known.name == *name));
    let ours = ours::play(&scenarios)?;
    let mut findings = judge::findings(&theirs, &ours, &entries);
    for _ in 0..REPLAYS {
        let again = differing(&scenarios, &findings);
        let Some(program) = cli.reference.as_ref().filter(|_| !again.is_empty()) else {
            break;
        };
        let names: Vec<_> = again.iter().map(|it| it.name.as_str()).collect();
        println!("once more for the real ones: {}", names.join(", "));
        theirs.extend(play(program, &again)?);
        findings = judge::findings(&theirs, &ours, &entries);
    }
    if let Some(file) = &cli.record {
        fs::write(file, serde_json::to_vec(&theirs)?)?;
    }
    Ok(report(cli, &theirs, &findings, &entries))
}

fn play(program: &Path, scenarios: &[Scenario]) -> Result<Recording> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(theirs::play(program, scenarios))
}

/// The scenarios with a difference that is not permitted.
fn differing(scenarios: &[Scenario], findings: &[Finding]) -> Vec<Scenario> {
    let differs = |name: &str| {
        let mut bad = findings.iter().filter(|it| it.allowed.is_none());
        bad.any(|it| it.scenario == name)
    };
    let all = scenarios.iter().filter(|it| differs(&it.name));
    all.cloned().collect()
}

/// Prints the findings; returns false if a difference is not permitted or an entry is unused.
fn report(
    cli: &Cli,
    theirs: &Recording,
    findings: &[Finding],
    entries: &[PermittedDifference],
) -> bool {
    let mut by_scenario: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for name in theirs.keys() {
        by_scenario.insert(name, Vec::new());
    }
    for finding in findings {
        by_scenario
            .entry(&finding.scenario)
            .or_default()
            .push(finding);
    }
    for (name, findings) in &by_scenario {
        print_findings(cli, name, findings);
    }
    let idle = unused_entries(cli, findings, entries);
    for entry in &idle {
        println!(
            " ✗ of no use: {} {}: {}",
            entry.kind, entry.field, entry.rule
        );
    }
    let objects: usize = theirs.values().flatten().map(Vec::len).sum();
    let bad = findings.iter().filter(|it| it.allowed.is_none()).count();
    println!(
        "{} scenarios, {objects} objects and events compared, {} allowed differences by {} entries, {bad} others; masked are:",
        by_scenario.len(),
        findings.len() - bad,
        entries.len(),
    );
    for mask in MASKS {
        println!("  {mask}");
    }
    bad == 0 && idle.is_empty()
}

fn print_findings(cli: &Cli, scenario: &str, findings: &[&Finding]) {
    let bad: Vec<_> = findings.iter().filter(|it| it.allowed.is_none()).collect();
    let mark = if bad.is_empty() { '✓' } else { '✗' };
    let allowed = findings.len() - bad.len();
    println!(" {mark} {scenario}: {allowed} allowed, {} not", bad.len());
    for it in bad {
        let Finding {
            step,
            kind,
            name,
            difference,
            ..
        } = it;
        println!("     step {step}, {kind} {name}");
        println!("       {}: {}", difference.field, difference.rule);
        if cli.verbose {
            println!("       theirs {}", difference.reference);
            println!("       ours   {}", difference.pocket);
        }
    }
}

/// Entries that permit nothing, if everything was played.
fn unused_entries<'a>(
    cli: &Cli,
    findings: &[Finding],
    entries: &'a [PermittedDifference],
) -> Vec<&'a PermittedDifference> {
    let used = |place: usize| findings.iter().any(|it| it.allowed == Some(place));
    let all = entries.iter().enumerate();
    all.filter(|(place, _)| cli.only.is_empty() && !used(*place))
        .map(|(_, entry)| entry)
        .collect()
}
