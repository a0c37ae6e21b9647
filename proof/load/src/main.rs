//! Puts load on a `neap up`; run through `cargo xtask crash` and `bench`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks"
)]

mod farm_command;
mod fleet_command;
mod idle_command;
mod leaders_command;
mod orphans_command;
mod release_command;

use std::{
    ffi::{OsStr, OsString},
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Parser, Subcommand, ValueEnum};
use neap_load::{
    crash,
    follower::{self, FollowerMode},
    informers, measure, reference,
    stopwatch::Stopwatch,
    subject::{Storage, Subject},
};
use serde_json::{Map, Value, json};

/// Watchers of one collection in the figure of that name.
const WATCHERS: usize = 1000;

/// Load, crashes and measurements against a `neap up`
#[derive(Debug, Parser)]
struct Cli {
    /// The program under test
    #[arg(long, value_name = "FILE", default_value = "neap")]
    neap: PathBuf,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Kill the server again and again, and check that it keeps its promises
    Crash {
        /// Number of kills
        #[arg(long, default_value_t = 500)]
        kills: usize,
        /// Seed of the moments and the writes
        #[arg(long)]
        seed: u64,
        /// Number of clients that write
        #[arg(long, default_value_t = 16)]
        writers: usize,
    },
    /// Pause, kill and terminate the leader of an election again and again, and judge who wrote
    /// when
    Leaders {
        /// How often a leader is paused past its lease and resumed, at short timings
        #[arg(long, default_value_t = 200)]
        stops: usize,
        /// How often a leader is killed, and how often one is terminated, at default timings
        #[arg(long, default_value_t = 20)]
        takeovers: usize,
        /// Seed of the moments
        #[arg(long)]
        seed: u64,
    },
    /// Kill a `neap up` with pods again and again, and look for remaining processes
    Orphans {
        /// Number of kills
        #[arg(long, default_value_t = 50)]
        tries: usize,
        /// Seed of the moments
        #[arg(long)]
        seed: u64,
        /// Output format
        #[arg(short, long, value_enum, default_value_t = orphans_command::Output::Table)]
        output: orphans_command::Output,
    },
    /// Take part in an election and write while leading; started by `leaders`
    Contestant {
        /// The kubeconfig of the server
        #[arg(long, value_name = "FILE")]
        kubeconfig: PathBuf,
        /// Unique among the candidates
        #[arg(long)]
        identity: String,
        /// The timings of the election
        #[arg(long, value_enum)]
        pace: PaceArg,
    },
    /// Watch ConfigMaps with one controller; started by the figure of that name
    Follow {
        /// The kubeconfig of the server
        #[arg(long, value_name = "FILE")]
        kubeconfig: PathBuf,
        /// Their metadata only
        #[arg(long)]
        metadata: bool,
        /// Write once for each change
        #[arg(long, conflicts_with = "metadata")]
        write: bool,
    },
    /// Run a command next to a real control plane
    Beside {
        /// The program that is the control plane
        #[arg(long, value_name = "FILE")]
        reference: PathBuf,
        /// Its controllers, as for kube-controller-manager [default: none]
        #[arg(long, value_name = "LIST")]
        controllers: Option<String>,
        /// The address ranges of services, one for each family [default: 10.0.0.0/24]
        #[arg(long, value_name = "RANGES")]
        service_addresses: Option<String>,
        /// The environment variable with the kubeconfig for the command
        #[arg(long, value_name = "NAME", default_value = "KUBECONFIG")]
        told_in: OsString,
        /// The command and its arguments
        #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
    /// Run the real controllers against it, and check their log for complaints
    Informers {
        /// The program that is kube-controller-manager and kubectl
        #[arg(long, value_name = "FILE")]
        reference: PathBuf,
        /// The minimum time for which they run, in seconds
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Their identity [default: both]
        #[arg(long = "as", value_enum)]
        identity: Vec<IdentityArg>,
    },
    /// Measure, and print the figures as JSON
    Measure(Measure),
    /// Measure services that sleep, and print the figures of each program as JSON
    Idle(idle_command::IdleCommand),
    /// Measure the release tools, and print the figures as JSON
    Release(release_command::ReleaseCommand),
    /// Measure the operator of build farms, and print the figures as JSON
    Farm(farm_command::FarmCommand),
    /// Measure a provider of clusters, and print the figures of each program as JSON
    Fleet(fleet_command::FleetCommand),
    /// Create clusters while backends are killed, and check that each is created once
    Crowd(fleet_command::CrowdCommand),
    /// Serve clusters from a database and do nothing else; started by `fleet`
    FleetBare(fleet_command::BareCommand),
}

#[derive(Debug, Args)]
struct Measure {
    /// The figure to measure
    #[arg(value_enum)]
    what: MeasureKind,
    /// Number of objects
    #[arg(long, default_value_t = 50_000)]
    objects: usize,
    /// Number of writes before a restart
    #[arg(long, default_value_t = 1_000_000)]
    writes: usize,
    /// Number of measurements; the median counts
    #[arg(long, default_value_t = 9)]
    times: usize,
    /// Store nothing on disk, or do not wait for the disk
    #[arg(long)]
    memory: bool,
    /// Measure the real control plane of this program, in place of neap
    #[arg(long, value_name = "FILE")]
    reference: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PaceArg {
    /// The shortest that a Lease supports
    Short,
    /// Those of every controller
    Default,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IdentityArg {
    /// All as the admin
    Admin,
    /// Each as its own service account
    ServiceAccounts,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum MeasureKind {
    /// Start to ready, and memory when idle
    Start,
    /// Memory per object, and the start with all of them
    Stored,
    /// Creates and gets
    Throughput,
    /// Gets by a user who is bound to a role
    Bound,
    /// Creates on one connection
    Single,
    /// From a write to the event at a watcher
    Told,
    /// From a write to the event at the last of a thousand watchers
    FanOut,
    /// A list of all objects
    List,
    /// A client beside others that send long lists
    Neighbour,
    /// The deletion of a namespace with all objects in it
    Namespace,
    /// The start after many writes
    Restart,
    /// From a definition to its resource
    Definition,
    /// From the command to the first answer of the sample's service
    Sample,
    /// The cost of watching
    Follow,
    /// The same with metadata only
    FollowMetadata,
    /// The cost of a change to a controller that writes for it
    FollowWriting,
    /// From a Deployment of 50 to its pods
    Rollout,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // On a worker thread, next to the tasks of its connections: from this thread each request would
    // be handed over first, which is no work of the measured server.
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
        } => leaders_command::leaders(neap, *stops, *takeovers, *seed).await,
        Task::Orphans {
            tries,
            seed,
            output,
        } => orphans_command::orphans(neap, *tries, *seed, *output).await,
        Task::Contestant {
            kubeconfig,
            identity,
            pace,
        } => leaders_command::candidate(kubeconfig, identity, *pace).await,
        Task::Follow {
            kubeconfig,
            metadata,
            write,
        } => {
            let mode = mode(*metadata, *write);
            follower::follow(kubeconfig, mode, |answer| println!("{answer}")).await
        }
        Task::Beside {
            reference,
            controllers,
            service_addresses: ranges,
            told_in,
            command,
        } => {
            let plan = plan(reference, controllers.as_ref(), ranges.as_deref());
            beside(&plan, told_in, command).await
        }
        Task::Informers {
            reference,
            seconds,
            identity,
        } => all_informers(neap, reference, *seconds, identity).await,
        Task::FleetBare(task) => task.serve().await,
        Task::Crowd(task) => {
            println!("✓ {}", task.run(neap).await?);
            Ok(())
        }
        Task::Measure(_) | Task::Idle(_) | Task::Farm(_) | Task::Fleet(_) | Task::Release(_) => {
            println!("{}", figures(neap, task).await?);
            Ok(())
        }
    }
}

/// The figures of a task that measures.
async fn figures(neap: &Path, task: &Task) -> Result<Value> {
    match task {
        Task::Measure(task) => Ok(printed(measured(neap, task).await?)),
        Task::Idle(task) => task.measured(neap).await,
        Task::Farm(task) => Ok(printed(task.measured(neap).await?)),
        Task::Fleet(task) => task.measured(neap).await,
        Task::Release(task) => Ok(printed(task.measured(neap).await?)),
        _ => bail!("this task measures nothing"),
    }
}

/// A control plane with these controllers, and service addresses in these ranges.
fn plan(
    program: &Path,
    controllers: Option<&String>,
    service_addresses: Option<&str>,
) -> reference::ReferenceOptions {
    let mut plan = reference::ReferenceOptions::new(program);
    plan.controllers = controllers.cloned();
    // Of a repeated flag the last one counts.
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

fn mode(metadata: bool, write: bool) -> FollowerMode {
    match (metadata, write) {
        (true, _) => FollowerMode::Metadata,
        (_, true) => FollowerMode::Write,
        _ => FollowerMode::Whole,
    }
}

async fn measured(neap: &Path, task: &Measure) -> Result<Vec<measure::Figure>> {
    let subject = &match &task.reference {
        None => Subject::Neap(neap.to_owned()),
        Some(program) => Subject::reference(program),
    };
    let folder = tempfile::tempdir()?;
    let storage = if task.memory {
        Storage::Memory
    } else {
        Storage::Folder(folder.path())
    };
    match task.what {
        MeasureKind::Start => measure::start(subject, task.times).await,
        MeasureKind::Stored => measure::stored(subject, task.objects).await,
        MeasureKind::Throughput => measure::throughput(subject, storage, task.objects).await,
        MeasureKind::Bound => measure::bound(subject, task.objects).await,
        MeasureKind::Single => measure::single(subject, storage, task.objects).await,
        MeasureKind::Told => measure::event_latency(subject, task.times).await,
        MeasureKind::FanOut => measure::fan_out(subject, WATCHERS, task.times).await,
        MeasureKind::List => measure::list(subject, task.objects).await,
        MeasureKind::Namespace => measure::namespace(subject, task.objects, task.times).await,
        MeasureKind::Neighbour => measure::neighbour(subject, task.objects).await,
        MeasureKind::Restart => measure::restart(neap, task.objects, task.writes).await,
        MeasureKind::Definition => measure::definition(neap, task.times).await,
        MeasureKind::Sample => measure::sample(neap, task.times).await,
        MeasureKind::Follow => measure::kit(neap, FollowerMode::Whole).await,
        MeasureKind::FollowMetadata => measure::kit(neap, FollowerMode::Metadata).await,
        MeasureKind::FollowWriting => measure::writing(neap).await,
        MeasureKind::Rollout => measure::rollout(subject, task.times).await,
    }
}

async fn beside(
    plan: &reference::ReferenceOptions,
    told_in: &OsStr,
    command: &[OsString],
) -> Result<()> {
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

/// With the given identities, or with all.
async fn all_informers(
    neap: &Path,
    reference: &Path,
    seconds: u64,
    named: &[IdentityArg],
) -> Result<()> {
    let identities = match named {
        [] => &[IdentityArg::Admin, IdentityArg::ServiceAccounts],
        named => named,
    };
    for &identity in identities {
        informers(neap, reference, seconds, identity).await?;
    }
    Ok(())
}

async fn informers(
    neap: &Path,
    reference: &Path,
    seconds: u64,
    identity: IdentityArg,
) -> Result<()> {
    let (identity, who) = match identity {
        IdentityArg::Admin => (informers::ControllerIdentity::Admin, "as the admin"),
        IdentityArg::ServiceAccounts => {
            let identity = informers::ControllerIdentity::ServiceAccounts;
            (identity, "each as a service account of its own")
        }
    };
    println!("kube-controller-manager, its controllers {who}");
    let plan = informers::InformerRunOptions {
        neap: neap.to_owned(),
        reference: reference.to_owned(),
        length: Duration::from_secs(seconds),
        identity,
    };
    informers::run(&plan, |seen| println!(" ✓ {seen}")).await
}

async fn crash(neap: &Path, kills: usize, seed: u64, writers: usize) -> Result<()> {
    println!("seed {seed}, {kills} kills, {writers} writers");
    let plan = crash::CrashOptions {
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

/// Overwrites the line on a terminal; elsewhere prints a line now and then.
fn progress(tally: &crash::CrashTally, kills: usize) {
    let mut stderr = io::stderr();
    // Nothing depends on the progress output.
    let _ = if stderr.is_terminal() {
        write!(stderr, "\r\x1b[2K{}/{kills}: {tally}", tally.kills)
    } else if tally.kills.is_multiple_of(50) {
        writeln!(stderr, "{}/{kills}: {tally}", tally.kills)
    } else {
        Ok(())
    };
}
