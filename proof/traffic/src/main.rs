//! Runs cells, several at a time, and reports the results.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks"
)]

mod real_runs;
mod report;
mod time_budget;

use std::{path::PathBuf, process::ExitCode, thread, time::Duration};

use anyhow::{Result, anyhow};
use clap::{Parser, Subcommand, ValueEnum};
use neap_traffic::{
    Cell, Deviation, LAGS, Pod, Protocol, RunOptions, SimulatedOutcome, Stopwatch, run_cell,
};
use parking_lot::Mutex;

use self::time_budget::BudgetScheduler;

/// Runs create and drop small objects all the time.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Puts services to sleep and wakes them under load, and counts every request that is lost or
/// duplicated
#[derive(Debug, Parser)]
#[command(name = "neap-traffic")]
struct Cli {
    #[command(subcommand)]
    role: Option<Role>,
    /// Number of cycles of each cell [default: 1000, and 10 with --real]
    #[arg(long)]
    cycles: Option<u64>,
    /// Tests this `neap` with real processes, in real time
    #[arg(long, value_name = "NEAP")]
    real: Option<PathBuf>,
    /// Only this cell, as LAG,RATE,PROTOCOL, such as 5,50,http1; may be repeated
    #[arg(long, value_name = "CELL")]
    cell: Vec<Cell>,
    /// Only cells whose data plane lags this many seconds; may be repeated
    #[arg(long, value_name = "SECONDS", conflicts_with = "cell")]
    lag: Vec<u64>,
    /// Ends after about this many seconds, with fewer cycles where they take long
    #[arg(long, value_name = "SECONDS")]
    budget: Option<u64>,
    /// Goes on beyond the budget until all cells together have run this many cycles
    #[arg(long, default_value_t = 0, conflicts_with = "real")]
    min_cycles: u64,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Number of cells at a time [default: one for each core]; with --real, number of lags with all
    /// their cells [default: 2]
    #[arg(long)]
    jobs: Option<usize>,
    /// Output format
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
        Some(neap) => real_runs::run(cli, neap, cells, watch),
        None => tell(cli, cells, played(cli, cells, watch), watch),
    }
}

fn played(cli: &Cli, cells: &[Cell], watch: Stopwatch) -> Vec<Result<SimulatedOutcome>> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = cli.jobs.unwrap_or(cores).clamp(1, cells.len());
    let scheduler = BudgetScheduler::new(cells, jobs, cli.budget.map(Duration::from_secs), watch);
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..jobs {
            let (scheduler, outcomes) = (&scheduler, &outcomes);
            scope.spawn(move || {
                while let Some((cell, budget)) = scheduler.next() {
                    let outcome = run_cell(RunOptions {
                        cell,
                        cycles: cli.cycles.unwrap_or(1000),
                        min_cycles: cli.min_cycles.div_ceil(cells.len() as u64),
                        budget,
                        seed: cli.seed,
                        deviation: Deviation::None,
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

/// Prints the results; returns whether every request was answered once and enough cycles were run.
fn tell(
    cli: &Cli,
    cells: &[Cell],
    outcomes: Vec<Result<SimulatedOutcome>>,
    watch: Stopwatch,
) -> Result<bool> {
    let (mut good, mut failed): (Vec<SimulatedOutcome>, Vec<_>) = (Vec::new(), Vec::new());
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
    let enough = report::too_few(&good, cli.min_cycles).is_none_or(|why| {
        eprintln!("✗ {why}");
        false
    });
    if good.is_empty() {
        return Err(anyhow!("nothing could be played"));
    }
    Ok(enough && failed.is_empty() && good.iter().all(SimulatedOutcome::holds))
}
