//! The command that checks what a killed `neap up` leaves behind.

use std::path::Path;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use neap_load::{
    orphans::{self, OrphanRunOptions, OrphanTally},
    stopwatch::Stopwatch,
};

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For programs
    Json,
}

pub(crate) async fn orphans(neap: &Path, tries: usize, seed: u64, output: Output) -> Result<()> {
    eprintln!("seed {seed}: {tries} kills; first a process that is left on purpose");
    let plan = OrphanRunOptions {
        neap: neap.to_owned(),
        tries,
        seed,
    };
    let watch = Stopwatch::start();
    let tally = orphans::run(&plan, |tally| progress(tally, tries, watch)).await?;
    match output {
        Output::Json => println!("{}", tally.json(seed)),
        Output::Table => print!("{tally}"),
    }
    let left = tally.left.len();
    ensure!(left == 0, "processes left a second after the kill: {left}");
    if output == Output::Table {
        let seconds = watch.elapsed().as_secs();
        println!("✓ nothing left after {tries} kills, in {seconds} s");
    }
    Ok(())
}

fn progress(tally: &OrphanTally, tries: usize, watch: Stopwatch) {
    let done = tally.tries();
    if done.is_multiple_of(10) || done == tries {
        let (seconds, left) = (watch.elapsed().as_secs(), tally.left.len());
        eprintln!("{done}/{tries} after {seconds} s: processes left {left}");
    }
}
