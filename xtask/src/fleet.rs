//! `cargo xtask fleet`: many clusters at once, and processes that are killed meanwhile.

use anyhow::Result;
use clap::Args;

use crate::{load::Built, process, tools};

#[derive(Debug, Args)]
pub(crate) struct Fleet {
    /// How many clusters are created at once
    #[arg(long, default_value_t = 100)]
    clusters: usize,
    /// Seconds between two kills; each kills one of the two backends
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    kill_every: u64,
    /// Simulated seconds until a new cluster's operators are available
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    settle: u64,
    /// Chooses which backend is killed if both have the same amount of work
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Instead, kill the database of a store this many times while it is written to
    #[arg(long, value_name = "NUMBER")]
    database_kills: Option<u32>,
}

/// Plays; false if a cluster was not created, or something was done twice or lost.
pub(crate) fn run(fleet: &Fleet) -> Result<bool> {
    if let Some(kills) = fleet.database_kills {
        return database(kills);
    }
    let built = Built::new()?;
    let mut command = built.load();
    command
        .args(["crowd", "--clusters", &fleet.clusters.to_string()])
        .args(["--kill-every", &fleet.kill_every.to_string()])
        .args(["--settle", &fleet.settle.to_string()])
        .args(["--seed", &fleet.seed.to_string()]);
    for (name, path) in tools::postgresql()? {
        if name != "pgbench" {
            command.arg(format!("--{name}")).arg(path);
        }
    }
    Ok(command.status()?.success())
}

/// The test of the store with another number of kills.
fn database(kills: u32) -> Result<bool> {
    let test = ["test", "--locked", "--quiet", "--package", "neap-store"];
    let mut command = process::cargo();
    command
        .args(test)
        .args(["--test", "suite", "kills::", "--", "--nocapture"])
        .env("NEAP_STORE_KILLS", kills.to_string());
    for (name, path) in tools::postgresql()? {
        command.env(format!("NEAP_{}", name.to_uppercase()), path);
    }
    Ok(command.status()?.success())
}
