//! Sends random requests to two servers; run through `cargo xtask differential`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks"
)]

use std::{fs, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use neap_api_conformance::{
    generate::Schemas,
    kinds, permitted,
    run::Run,
    schema::Types,
    summary::{self, PropertyCoverage},
};
use neap_load::{client::Client, reference::ReferenceOptions, server::Server};

/// Sends random requests to a real kube-apiserver and to `neap up`, and reports the differences
#[derive(Debug, Parser)]
struct Cli {
    /// The `neap` to compare with the reference
    #[arg(long, value_name = "FILE")]
    neap: PathBuf,
    /// The program of the reference
    #[arg(long, value_name = "FILE", required_unless_present = "reference")]
    program: Option<PathBuf>,
    /// Host and port of a running reference
    #[arg(long, env = "NEAP_REFERENCE_ADDRESS")]
    reference: Option<String>,
    /// Its certificate authority
    #[arg(long, value_name = "FILE", env = "NEAP_REFERENCE_CA")]
    reference_ca: Option<PathBuf>,
    /// A token of it with all permissions
    #[arg(long, env = "NEAP_REFERENCE_TOKEN")]
    reference_token: Option<String>,
    /// Number of seeds
    #[arg(long, default_value_t = 10)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of requests of each seed
    #[arg(long, default_value_t = 20_000)]
    requests: usize,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// A file for all findings, as JSON
    #[arg(long, value_name = "FILE")]
    details: Option<PathBuf>,
    /// A file for the calls of the last seed, which `--replay` reads
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Sends recorded calls instead of random ones
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Added to names, so that a reference can be used again
    #[arg(long, default_value = "")]
    tag: String,
    /// Kinds of the requests, by name; all if none is given
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    only: Vec<String>,
    /// Number of differences to print
    #[arg(long, default_value_t = 60)]
    show: usize,
}

/// Controllers of the reference that do what ours does by itself.
const CONTROLLERS: &str = "namespace-controller,garbage-collector-controller,serviceaccount-controller,\
    root-ca-certificate-publisher-controller";

#[derive(Debug, Clone, Copy, ValueEnum, PartialEq)]
enum Output {
    Table,
    Json,
}

#[tokio::main]
async fn main() -> ExitCode {
    match go(&Cli::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("✗ {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn go(cli: &Cli) -> Result<bool> {
    let started = match &cli.program {
        Some(program) => {
            let mut plan = ReferenceOptions::new(program);
            plan.controllers = Some(CONTROLLERS.into());
            Some(plan.start().await?)
        }
        None => None,
    };
    let reference = match &started {
        Some(reference) => reference.client()?,
        None => running_reference(cli)?,
    };
    let server = Server::start(&cli.neap, None)?;
    let mut types = Types::read()?;
    let mut kinds = kinds::table(&mut types)?;
    for kind in &mut kinds {
        if !cli.only.is_empty() && !cli.only.contains(&kind.name) {
            kind.weight = 0;
        }
    }
    let world = Arc::new(Schemas { types, kinds });
    let entries = permitted::entries()?;
    let mut run = Run::begin(world.clone(), reference, server.client()?, entries.clone()).await?;
    run.tag.clone_from(&cli.tag);
    if let Some(file) = &cli.replay {
        run.replay(&fs::read_to_string(file).context("reading the recorded calls")?)
            .await?;
    } else {
        for seed in cli.seed..cli.seed + cli.seeds {
            let done = run.seed(seed, cli.requests).await;
            if let Some(file) = &cli.record {
                fs::write(file, run.recorded())?;
            }
            done?;
            let (all, refused) = run.report.totals();
            let found = run.report.found.len();
            eprintln!("seed {seed}: {all} requests so far, {refused} refused, {found} signatures");
        }
    }
    print_report(cli, &run, &world, &entries)
}

/// A reference that is already running.
fn running_reference(cli: &Cli) -> Result<Client> {
    let named = "an address, an authority and a token name a reference";
    let authority = fs::read(cli.reference_ca.as_ref().context(named)?)?;
    let address = cli.reference.as_ref().context(named)?;
    Client::to(
        address,
        &authority,
        cli.reference_token.as_ref().context(named)?,
    )
}

/// Prints the findings; returns false if there are any that are not allowed.
fn print_report(
    cli: &Cli,
    run: &Run,
    world: &Schemas,
    entries: &[permitted::PermittedDifference],
) -> Result<bool> {
    let roots: Vec<_> = world.kinds.iter().map(|kind| kind.root.clone()).collect();
    let all = world.types.properties(&roots);
    let (sent, accepted) = run.touched.counts(&all);
    let share = PropertyCoverage {
        all: all.len(),
        sent,
        accepted,
    };
    let mut report = run.report.json();
    report["properties"] = serde_json::json!({"all": all.len(), "sent": sent, "accepted": accepted, "missed": run.touched.missed(&all)});
    if let Some(file) = &cli.details {
        fs::write(file, format!("{report:#}"))?;
    }
    if cli.output == Output::Json {
        println!("{report:#}");
    } else {
        print!("{}", summary::counts(&run.report, share));
        print!("{}", summary::allowances(&run.report, entries));
        print!("{}", summary::differences(&run.report, cli.show));
    }
    let used = (0..entries.len()).all(|entry| run.report.allowed.contains_key(&entry));
    // A replay or a run of some kinds need not meet every entry.
    let partial = cli.replay.is_some() || !cli.only.is_empty();
    Ok(run.report.found.is_empty() && (used || partial) && (partial || is_enough(cli, run)))
}

/// A full run with too few requests, or too few refusals, has proved nothing.
fn is_enough(cli: &Cli, run: &Run) -> bool {
    let (all, refused) = run.report.totals();
    let full = cli.seeds >= 10;
    let enough = !full || (all >= 200_000 && refused * 4 >= all);
    if !enough {
        eprintln!("✗ {all} requests, {refused} refused: 200000 and a quarter refused are asked");
    }
    enough
}
