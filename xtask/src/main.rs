//! `cargo xtask`: what the project does to itself.
//!
//! Knows the other crates by name only, never as code, so that it builds when they do not.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks"
)]

mod bench;
mod buildbarn;
mod check;
mod differential;
mod dist;
mod farm;
mod faults;
mod fleet;
mod generate;
mod idle;
mod image;
mod kit;
mod load;
mod loss;
mod process;
mod prow;
mod release;
mod spdx;
mod stopwatch;
mod streams;
mod test;
mod tools;
mod workspace;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

/// Checks, tests and measures the project, and writes its generated files.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Checks without running the product: format, lints, layout, dependencies
    Check {
        /// A copy of the RustSec advisory database [default: advisory-db in the cargo home]
        #[arg(long, value_name = "DIR")]
        advisories: Option<PathBuf>,
        /// Only checks whose name has this in it
        #[arg(long, value_name = "TEXT", default_value = "")]
        only: String,
    },
    /// The test command: sets up what the tests need, checks, and runs them all
    Test {
        /// Leave out `cargo xtask check`
        #[arg(long)]
        no_check: bool,
        /// Arguments for `cargo test`, such as a filter
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Measures, and says whether the figures hold
    Bench {
        /// What to measure
        #[arg(value_enum)]
        area: bench::Area,
        /// How to print the rows
        #[arg(short, long, value_enum, default_value_t = bench::Output::Table)]
        output: bench::Output,
        /// Measure ours alone: quick, and figures that are asked as a ratio are not judged
        #[arg(long)]
        no_peer: bool,
        /// Only figures whose name has this in it
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
    },
    /// Kills a server that is written to, again and again, and holds it to its promises
    Crash {
        /// How often
        #[arg(long, default_value_t = 500)]
        kills: usize,
        /// Repeats the choices of an earlier run [default: another one each time]
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Stops, kills and ends the leader of an election, and judges who wrote when
    Leaders {
        /// How often one is stopped past its lease and goes on, at short timings
        #[arg(long, default_value_t = 200)]
        stops: usize,
        /// How often one is killed, and how often one ends in order, at default timings
        #[arg(long, default_value_t = 20)]
        takeovers: usize,
        /// Repeats the choices of an earlier run [default: another one each time]
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Kills a `neap up` whose pods start, run and stop, and names every process that is left
    Orphans {
        /// How often
        #[arg(long, default_value_t = 50)]
        tries: usize,
        /// Repeats the choices of an earlier run [default: another one each time]
        #[arg(long)]
        seed: Option<u64>,
        /// How to print the result
        #[arg(short, long, value_enum, default_value_t = bench::Output::Table)]
        output: bench::Output,
    },
    /// Sends the same requests to ours and to a real kube-apiserver, and names every difference
    Differential {
        /// How many seeds the random part runs
        #[arg(long, default_value_t = 10)]
        seeds: u64,
    },
    /// Plays the same scripts to world's controllers and to the real ones, and names every difference
    Controllers {
        /// Only scenarios whose name has this in it
        #[arg(long, value_name = "TEXT", default_value = "")]
        only: String,
    },
    /// Lets the real kube-controller-manager work on ours, and hears what it complains about
    Informers {
        /// How long it runs at least, each time
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Runs kit's own tests, as they are, on a real kube-apiserver
    Kit {
        /// Only tests whose name has this in it
        #[arg(long, value_name = "TEXT", default_value = "")]
        only: String,
    },
    /// Builds the programs of Buildbarn from the Go module proxy, for `neap up` to run examples/farm
    Buildbarn,
    /// Runs a farm of real Buildbarn programs on neap up, with Bazel, and changes it under load
    Farm {
        /// Only scenarios whose name has this in it
        #[arg(long, value_name = "TEXT", default_value = "")]
        only: String,
        /// Installs the operator on a real kube-apiserver instead, and makes farms ready there
        #[arg(long)]
        reference: bool,
    },
    /// Runs streams of releases on a real kube-apiserver
    Streams {
        /// Only tests whose name has this in it
        #[arg(long, value_name = "TEXT", default_value = "")]
        only: String,
    },
    /// Lets the real controller of Prow run the jobs of releases on neap up
    Prow,
    /// Imports the tags of ImageStreams on a real kube-apiserver
    Release {
        /// Only tests whose name has this in it
        #[arg(long, value_name = "TEXT", default_value = "")]
        only: String,
    },
    /// Runs the operator and both installs of idle on a real kube-apiserver
    Idle,
    /// Plays controllers through every fault, and names what goes wrong
    Faults(faults::Faults),
    /// Creates clusters while backends are killed, and names what was lost or done twice
    Fleet(fleet::Fleet),
    /// Lets services fall asleep and wake under load, and counts what is lost or sent twice
    Loss(loss::Loss),
    /// Builds the OCI image of neap, without a container engine
    Image(image::Image),
    /// Builds the archive of neap, with completions, manual pages, checksums and SBOM
    Dist(dist::Dist),
    /// Writes the generated files
    Generate {
        /// Write nothing, and fail if a committed one differs
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let holds = match Cli::parse().task {
        Task::Check { advisories, only } => check::run(advisories, &only),
        Task::Test {
            no_check,
            arguments,
        } => test::run(!no_check, &arguments),
        Task::Bench {
            area,
            output,
            no_peer,
            only,
        } => bench::run(area, output, &bench::Scope { no_peer, only }),
        Task::Crash { kills, seed } => load::crash(kills, seed),
        Task::Leaders {
            stops,
            takeovers,
            seed,
        } => load::leaders(stops, takeovers, seed),
        Task::Orphans {
            tries,
            seed,
            output,
        } => load::orphans(tries, seed, output),
        Task::Differential { seeds } => differential::run(seeds),
        Task::Controllers { only } => differential::controllers(&only),
        Task::Informers { seconds } => load::informers(seconds),
        Task::Kit { only } => kit::run(&only),
        Task::Buildbarn => buildbarn::run().map(|()| true),
        Task::Farm { only, reference } => farm::run(&only, reference),
        Task::Streams { only } => streams::run(&only),
        Task::Prow => prow::run(),
        Task::Release { only } => release::run(&only),
        Task::Idle => idle::run(),
        Task::Faults(faults) => faults::run(&faults),
        Task::Fleet(fleet) => fleet::run(&fleet),
        Task::Loss(loss) => loss::run(&loss),
        Task::Image(image) => image::run(&image),
        Task::Dist(dist) => dist::run(&dist),
        Task::Generate { check } => generate::run(check).map(|()| true),
    };
    match holds {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("✗ {error:#}");
            ExitCode::FAILURE
        }
    }
}
