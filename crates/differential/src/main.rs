//! Random requests to two servers from a command line; run through `cargo xtask differential`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks"
)]

use std::{fs, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use neap_differential::{allow, draw::World, kinds, run::Run, schema::Types};
use neap_load::{client::Client, server::Server};

/// Sends random requests to a real kube-apiserver and to `neap up`, and tells what differs
#[derive(Debug, Parser)]
struct Cli {
    /// The `neap` to hold against the reference
    #[arg(long, value_name = "FILE")]
    neap: PathBuf,
    /// Host and port of the reference
    #[arg(long, env = "NEAP_REFERENCE_ADDRESS")]
    reference: String,
    /// The reference's certificate authority
    #[arg(long, value_name = "FILE", env = "NEAP_REFERENCE_CA")]
    reference_ca: PathBuf,
    /// A token that the reference lets do everything
    #[arg(long, env = "NEAP_REFERENCE_TOKEN")]
    reference_token: String,
    /// How many seeds
    #[arg(long, default_value_t = 10)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many requests of each seed
    #[arg(long, default_value_t = 20_000)]
    requests: usize,
    /// How to print what was found
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// A file for everything that was found, as JSON
    #[arg(long, value_name = "FILE")]
    details: Option<PathBuf>,
    /// Put into names, so that a reference can be used again
    #[arg(long, default_value = "")]
    tag: String,
    /// How many differences to print
    #[arg(long, default_value_t = 60)]
    show: usize,
}

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
    let authority = fs::read(&cli.reference_ca).context("reading the reference's authority")?;
    let reference = Client::to(&cli.reference, &authority, &cli.reference_token)?;
    let server = Server::start(&cli.neap, None)?;
    let mut types = Types::read()?;
    let kinds = kinds::table(&mut types)?;
    let world = Arc::new(World { types, kinds });
    let entries = allow::entries()?;
    let mut run = Run::begin(world.clone(), reference, server.client()?, entries.clone()).await?;
    run.tag = cli.tag.clone();
    let mut broken = None;
    for seed in cli.seed..cli.seed + cli.seeds {
        if let Err(error) = run.seed(seed, cli.requests).await {
            broken = Some(error);
            break;
        }
        let (all, refused) = run.report.totals();
        eprintln!(
            "seed {seed}: {all} requests, {refused} refused, {} signatures",
            run.report.found.len()
        );
    }
    let unused: Vec<_> = (0..entries.len())
        .filter(|entry| !run.report.allowed.contains_key(entry))
        .collect();
    let roots: Vec<_> = world.kinds.iter().map(|kind| kind.root.clone()).collect();
    let all = world.types.properties(&roots);
    let (sent, accepted) = run.touched.counts(&all);
    if let Some(file) = &cli.details {
        fs::write(file, format!("{:#}", run.report.json()))?;
    }
    if cli.output == Output::Json {
        let mut report = run.report.json();
        report["properties"] = serde_json::json!({"all": all.len(), "sent": sent, "accepted": accepted, "missed": run.touched.missed(&all)});
        println!("{report:#}");
    } else {
        for (signature, found) in run.report.ranked().into_iter().take(cli.show) {
            println!(
                "{}× {} {} · {} · {}",
                found.count, signature.kind, signature.verb, signature.field, signature.rule
            );
            println!("    seed {} call {}", found.first.0, found.first.1);
        }
        println!(
            "properties: {} of which {sent} sent, {accepted} accepted",
            all.len()
        );
    }
    if let Some(error) = broken {
        return Err(error);
    }
    Ok(run.report.found.is_empty() && unused.is_empty())
}
