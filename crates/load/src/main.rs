//! Works a `neap up` hard from a command line; run through `cargo xtask crash` and `bench`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks"
)]

mod asleep;
mod elections;
mod leftovers;

use std::{
    ffi::{OsStr, OsString},
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand, ValueEnum};
use neap_load::{
    crash,
    follower::{self, Purpose},
    informers, measure, reference,
    stopwatch::Stopwatch,
    subject::{Keeping, Subject},
};
use serde_json::{Map, Value, json};

/// The watchers of one collection in the figure of that name.
const WATCHERS: usize = 1000;

/// Load, crashes and measurements against a `neap up`
#[derive(Debug, Parser)]
struct Cli {
    /// The program to work
    #[arg(long, value_name = "FILE", default_value = "neap")]
    neap: PathBuf,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Kill the server again and again, and hold it to its promises
    Crash {
        /// How often
        #[arg(long, default_value_t = 500)]
        kills: usize,
        /// Decides moments and writes
        #[arg(long)]
        seed: u64,
        /// How many clients write
        #[arg(long, default_value_t = 16)]
        writers: usize,
    },
    /// Stop, kill and end the leader of an election again and again, and judge who wrote when
    Leaders {
        /// How often a leader is stopped past its lease and goes on, at short timings
        #[arg(long, default_value_t = 200)]
        stops: usize,
        /// How often one is killed, and how often one ends in order, at default timings
        #[arg(long, default_value_t = 20)]
        takeovers: usize,
        /// Decides the moments
        #[arg(long)]
        seed: u64,
    },
    /// Kill a `neap up` with pods again and again, and look for processes that are left
    Orphans {
        /// How often
        #[arg(long, default_value_t = 50)]
        tries: usize,
        /// Decides the moments
        #[arg(long)]
        seed: u64,
        /// How to print the result
        #[arg(short, long, value_enum, default_value_t = leftovers::Output::Table)]
        output: leftovers::Output,
    },
    /// Stand for election and write while leading; what `leaders` starts
    Contestant {
        /// The server
        #[arg(long, value_name = "FILE")]
        kubeconfig: PathBuf,
        /// Unlike every other
        #[arg(long)]
        identity: String,
        /// How long things last
        #[arg(long, value_enum)]
        pace: Timings,
    },
    /// Follow ConfigMaps with one controller; what the figure of that name starts
    Follow {
        /// The server
        #[arg(long, value_name = "FILE")]
        kubeconfig: PathBuf,
        /// Their metadata alone
        #[arg(long)]
        metadata: bool,
        /// Write something for each change of one
        #[arg(long, conflicts_with = "metadata")]
        write: bool,
    },
    /// Run a command beside a real control plane
    Beside {
        /// The program that is the control plane
        #[arg(long, value_name = "FILE")]
        reference: PathBuf,
        /// Its controllers, in the words of kube-controller-manager [default: none]
        #[arg(long, value_name = "LIST")]
        controllers: Option<String>,
        /// Where services have their addresses, one range for each family [default: 10.0.0.0/24]
        #[arg(long, value_name = "RANGES")]
        service_addresses: Option<String>,
        /// The environment variable that tells the command the kubeconfig
        #[arg(long, value_name = "NAME", default_value = "KUBECONFIG")]
        told_in: OsString,
        /// The command and its arguments
        #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
    /// Let the real controllers work on it, and hear what they complain about
    Informers {
        /// The program that is kube-controller-manager and kubectl
        #[arg(long, value_name = "FILE")]
        reference: PathBuf,
        /// How long they run at least, in seconds
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// As whom they come [default: both]
        #[arg(long = "as", value_enum)]
        identity: Vec<As>,
    },
    /// Measure, and print the figures as JSON
    Measure(Measure),
    /// Measure services that sleep, and print the figures as JSON by whose they are
    Idle(asleep::Idle),
}

#[derive(Debug, Args)]
struct Measure {
    /// What to measure
    #[arg(value_enum)]
    what: What,
    /// How many objects
    #[arg(long, default_value_t = 50_000)]
    objects: usize,
    /// How many writes before a restart
    #[arg(long, default_value_t = 1_000_000)]
    writes: usize,
    /// How often, where the middle one counts
    #[arg(long, default_value_t = 9)]
    times: usize,
    /// Keep nothing on disk, or do not wait for the disk
    #[arg(long)]
    memory: bool,
    /// Measure the real control plane that this program is, in place of neap
    #[arg(long, value_name = "FILE")]
    reference: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Timings {
    /// The shortest that a Lease can say
    Short,
    /// Those of every controller
    Default,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum As {
    /// All as the admin
    Admin,
    /// Each as a service account of its own
    ServiceAccounts,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// Start to ready, and memory when idle
    Start,
    /// Memory per object, and the start with all of them
    Stored,
    /// Creates and gets
    Throughput,
    /// Gets by somebody who is bound to a role
    Bound,
    /// Creates on one connection
    Single,
    /// From a write to the event at a watcher
    Told,
    /// From a write to the event at the last of a thousand watchers
    FanOut,
    /// A list of all objects
    List,
    /// The end of a namespace with all objects in it
    Namespace,
    /// The start after many writes
    Restart,
    /// From a definition to its resource
    Definition,
    /// From the command to the first answer of the sample's service
    Sample,
    /// What it costs a process to watch
    Follow,
    /// The same with metadata alone
    FollowMetadata,
    /// What a change costs whom it gives something to write
    FollowWriting,
    /// From a Deployment of 50 to its pods
    Rollout,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // On a worker, beside the tasks of its connections: from this thread each request would be
    // handed over first, which is no work of the server that is measured.
    let task = async move { run(&cli.neap, &cli.task).await };
    let done = tokio::runtime::Runtime::new()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(runtime.spawn(task))?);
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("✗ {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(neap: &Path, task: &Task) -> Result<()> {
    match task {
        Task::Crash {
            kills,
            seed,
            writers,
        } => crash(neap, *kills, *seed, *writers).await,
        Task::Leaders {
            stops,
            takeovers,
            seed,
        } => elections::leaders(neap, *stops, *takeovers, *seed).await,
        Task::Orphans {
            tries,
            seed,
            output,
        } => leftovers::orphans(neap, *tries, *seed, *output).await,
        Task::Contestant {
            kubeconfig,
            identity,
            pace,
        } => elections::contestant(kubeconfig, identity, *pace).await,
        Task::Follow {
            kubeconfig,
            metadata,
            write,
        } => {
            let purpose = purpose(*metadata, *write);
            follower::follow(kubeconfig, purpose, |answer| println!("{answer}")).await
        }
        Task::Beside {
            reference,
            controllers,
            service_addresses,
            told_in,
            command,
        } => {
            let plan = plan(
                reference,
                controllers.as_ref(),
                service_addresses.as_deref(),
            );
            beside(&plan, told_in, command).await
        }
        Task::Informers {
            reference,
            seconds,
            identity,
        } => all_informers(neap, reference, *seconds, identity).await,
        Task::Measure(task) => {
            println!("{}", printed(measured(neap, task).await?));
            Ok(())
        }
        Task::Idle(task) => {
            println!("{}", task.measured(neap).await?);
            Ok(())
        }
    }
}

/// A control plane with these controllers, and addresses of services in these ranges.
fn plan(
    program: &Path,
    controllers: Option<&String>,
    service_addresses: Option<&str>,
) -> reference::Plan {
    let mut plan = reference::Plan::new(program);
    plan.controllers = controllers.cloned();
    // Of a flag that is given twice the last counts.
    let ranges = service_addresses.into_iter();
    let ranges = ranges.map(|ranges| format!("--service-cluster-ip-range={ranges}"));
    plan.apiserver_flags.extend(ranges);
    plan
}

fn printed(figures: Vec<measure::Figure>) -> Value {
    let figures = figures.into_iter();
    let figures: Map<String, Value> = figures
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    Value::Object(figures)
}

fn purpose(metadata: bool, write: bool) -> Purpose {
    match (metadata, write) {
        (true, _) => Purpose::Metadata,
        (_, true) => Purpose::Write,
        _ => Purpose::Whole,
    }
}

async fn measured(neap: &Path, task: &Measure) -> Result<Vec<measure::Figure>> {
    let subject = &match &task.reference {
        None => Subject::Neap(neap.to_owned()),
        Some(program) => Subject::reference(program),
    };
    let folder = tempfile::tempdir()?;
    let keeping = if task.memory {
        Keeping::Memory
    } else {
        Keeping::Folder(folder.path())
    };
    match task.what {
        What::Start => measure::start(subject, task.times).await,
        What::Stored => measure::stored(subject, task.objects).await,
        What::Throughput => measure::throughput(subject, keeping, task.objects).await,
        What::Bound => measure::bound(subject, task.objects).await,
        What::Single => measure::single(subject, keeping, task.objects).await,
        What::Told => measure::told(subject, task.times).await,
        What::FanOut => measure::fan_out(subject, WATCHERS, task.times).await,
        What::List => measure::list(subject, task.objects).await,
        What::Namespace => measure::namespace(subject, task.objects, task.times).await,
        What::Restart => measure::restart(neap, task.objects, task.writes).await,
        What::Definition => measure::definition(neap, task.times).await,
        What::Sample => measure::sample(neap, task.times).await,
        What::Follow => measure::kit(neap, Purpose::Whole).await,
        What::FollowMetadata => measure::kit(neap, Purpose::Metadata).await,
        What::FollowWriting => measure::writing(neap).await,
        What::Rollout => measure::rollout(subject, task.times).await,
    }
}

async fn beside(plan: &reference::Plan, told_in: &OsStr, command: &[OsString]) -> Result<()> {
    let (program, arguments) = command.split_first().context("no command")?;
    let reference = plan.start().await?;
    let status = Command::new(program)
        .args(arguments)
        .env(told_in, reference.kubeconfig())
        .env(
            "NEAP_REFERENCE_ADDRESS",
            reference.base().trim_start_matches("https://"),
        )
        .env("NEAP_REFERENCE_CA", reference.authority_file())
        .env("NEAP_REFERENCE_TOKEN", reference.admin_token())
        .status()?;
    ensure!(status.success(), "the command failed ({status})");
    Ok(())
}

/// As those who were named, or as everybody.
async fn all_informers(neap: &Path, reference: &Path, seconds: u64, named: &[As]) -> Result<()> {
    let identities = match named {
        [] => &[As::Admin, As::ServiceAccounts],
        named => named,
    };
    for &identity in identities {
        informers(neap, reference, seconds, identity).await?;
    }
    Ok(())
}

async fn informers(neap: &Path, reference: &Path, seconds: u64, identity: As) -> Result<()> {
    let (identity, who) = match identity {
        As::Admin => (informers::Identity::Admin, "as the admin"),
        As::ServiceAccounts => {
            let identity = informers::Identity::ServiceAccounts;
            (identity, "each as a service account of its own")
        }
    };
    println!("kube-controller-manager, its controllers {who}");
    let plan = informers::Plan {
        neap: neap.to_owned(),
        reference: reference.to_owned(),
        length: Duration::from_secs(seconds),
        identity,
    };
    informers::run(&plan, |seen| println!(" ✓ {seen}")).await
}

async fn crash(neap: &Path, kills: usize, seed: u64, writers: usize) -> Result<()> {
    println!("seed {seed}, {kills} kills, {writers} writers");
    let plan = crash::Plan {
        neap: neap.to_owned(),
        kills,
        writers,
        seed,
    };
    let watch = Stopwatch::start();
    let tally = crash::run(&plan, |tally| progress(tally, kills)).await;
    if io::stderr().is_terminal() {
        eprintln!();
    }
    let seconds = watch.elapsed().as_secs();
    println!("✓ {} in {seconds} s", tally?);
    Ok(())
}

/// Written over on a terminal; elsewhere a line now and then.
fn progress(tally: &crash::Tally, kills: usize) {
    let mut stderr = io::stderr();
    // Nothing depends on progress being seen.
    let _ = if stderr.is_terminal() {
        write!(stderr, "\r\x1b[2K{}/{kills}: {tally}", tally.kills)
    } else if tally.kills.is_multiple_of(50) {
        writeln!(stderr, "{}/{kills}: {tally}", tally.kills)
    } else {
        Ok(())
    };
}
