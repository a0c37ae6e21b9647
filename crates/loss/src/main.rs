//! Plays cells, several at a time, and says what came of each.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks"
)]

mod lags;
mod report;
mod share;

use std::{path::PathBuf, process::ExitCode, thread, time::Duration};

use anyhow::{Result, anyhow};
use clap::{Parser, Subcommand, ValueEnum};
use neap_loss::{Asked, Cell, LAGS, Outcome, Pod, Protocol, Stopwatch, Twist, play};
use parking_lot::Mutex;

use self::share::Share;

/// Plays make and drop small objects all the time.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Lets services fall asleep and wake under load, and counts every request that is lost or sent
/// twice.
#[derive(Debug, Parser)]
#[command(name = "neap-loss")]
struct Cli {
    #[command(subcommand)]
    role: Option<Role>,
    /// How often each falls asleep and wakes [default: 1000, and 10 with --real]
    #[arg(long)]
    cycles: Option<u64>,
    /// Tries this `neap` with real processes, in real time
    #[arg(long, value_name = "NEAP")]
    real: Option<PathBuf>,
    /// Only this one, as LAG,RATE,PROTOCOL, such as 5,50,http1; may be given several times
    #[arg(long, value_name = "CELL")]
    cell: Vec<Cell>,
    /// Only those whose data plane lags so many seconds; may be given several times
    #[arg(long, value_name = "SECONDS", conflicts_with = "cell")]
    lag: Vec<u64>,
    /// Ends after about so many seconds, with fewer cycles where they take long
    #[arg(long, value_name = "SECONDS")]
    budget: Option<u64>,
    /// Where chances come from
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// So many cells are played at a time [default: one for each core]; with --real, so many lags with
    /// all their cells [default: 2]
    #[arg(long)]
    jobs: Option<usize>,
    /// How to print what came of it
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Answers as a pod, for --real
    #[command(hide = true)]
    Pod {
        #[arg(value_parser = spoken)]
        protocol: Protocol,
        ledger: PathBuf,
        linger: u64,
    },
}

fn spoken(word: &str) -> Result<Protocol, String> {
    let found = Protocol::ALL.into_iter().find(|one| one.word() == word);
    found.ok_or_else(|| format!("{word} is not spoken here"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    Table,
    /// For programs
    Json,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.role {
        Some(Role::Pod {
            protocol,
            ledger,
            linger,
        }) => {
            let linger = Duration::from_millis(linger);
            let pod = Pod {
                protocol,
                ledger,
                linger,
            };
            pod.run().map(|()| true)
        }
        None => run(&cli),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("✗ {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<bool> {
    let watch = Stopwatch::start();
    let mut all = Cell::all();
    all.retain(|cell| cli.lag.is_empty() || cli.lag.contains(&cell.lag));
    let cells = if cli.cell.is_empty() { &all } else { &cli.cell };
    if cells.is_empty() {
        return Err(anyhow!(
            "there is no cell with such a lag: name one of {LAGS:?}"
        ));
    }
    match &cli.real {
        Some(neap) => lags::run(cli, neap, cells, watch),
        None => tell(cli, cells, played(cli, cells, watch), watch),
    }
}

fn played(cli: &Cli, cells: &[Cell], watch: Stopwatch) -> Vec<Result<Outcome>> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = cli.jobs.unwrap_or(cores).clamp(1, cells.len());
    let share = Share::new(cells, jobs, cli.budget.map(Duration::from_secs), watch);
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..jobs {
            let (share, outcomes) = (&share, &outcomes);
            scope.spawn(move || {
                while let Some((cell, budget)) = share.next() {
                    let outcome = play(Asked {
                        cell,
                        cycles: cli.cycles.unwrap_or(1000),
                        budget,
                        seed: cli.seed,
                        twist: Twist::None,
                    });
                    if let Ok(outcome) = &outcome {
                        eprintln!("{}", report::line(outcome));
                    }
                    outcomes.lock().push(outcome);
                }
            });
        }
    });
    outcomes.into_inner()
}

/// Whether every request was answered once.
fn tell(
    cli: &Cli,
    cells: &[Cell],
    outcomes: Vec<Result<Outcome>>,
    watch: Stopwatch,
) -> Result<bool> {
    let (mut good, mut failed): (Vec<Outcome>, Vec<_>) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => good.push(outcome),
            Err(error) => failed.push(error),
        }
    }
    good.sort_by_key(|outcome| cells.iter().position(|cell| *cell == outcome.cell));
    match cli.output {
        Output::Table => print!("{}", report::table(&good, watch.elapsed())),
        Output::Json => println!("{}", serde_json::to_string_pretty(&good)?),
    }
    for error in &failed {
        eprintln!("✗ {error:#}");
    }
    if good.is_empty() {
        return Err(anyhow!("nothing could be played"));
    }
    Ok(failed.is_empty() && good.iter().all(Outcome::holds))
}
