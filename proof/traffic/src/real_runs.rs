//! Runs with real processes: all cells of a lag at once, several lags at a time.

use std::{fmt::Write, path::Path, thread};

use anyhow::Result;
use neap_traffic::{Cell, LAGS, Programs, RealOutcome, Stopwatch, run_real};
use parking_lot::Mutex;

use crate::{Cli, Output};

/// Runs the cells and prints the results; returns whether all of them hold.
pub(crate) fn run(cli: &Cli, neap: &Path, cells: &[Cell], watch: Stopwatch) -> Result<bool> {
    let programs = Programs {
        neap: neap.canonicalize()?,
        pod: std::env::current_exe()?,
    };
    let (outcomes, failed) = run_cell(cli, &programs, cells);
    match cli.output {
        Output::Table => print!("{}", table(&outcomes, watch)),
        Output::Json => println!("{}", serde_json::to_string_pretty(&outcomes)?),
    }
    for error in &failed {
        eprintln!("✗ {error:#}");
    }
    let complete = outcomes.len() == cells.len();
    Ok(failed.is_empty() && complete && outcomes.iter().all(RealOutcome::holds))
}

fn run_cell(
    cli: &Cli,
    programs: &Programs,
    cells: &[Cell],
) -> (Vec<RealOutcome>, Vec<anyhow::Error>) {
    let of = |lag| -> Vec<Cell> {
        cells
            .iter()
            .copied()
            .filter(|cell| cell.lag == lag)
            .collect()
    };
    let lags: Vec<_> = LAGS
        .map(of)
        .into_iter()
        .filter(|some| !some.is_empty())
        .collect();
    // They are in ascending order and taken from the end, so the longest comes first.
    let left = Mutex::new(lags);
    let (outcomes, failed) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let cycles = cli.cycles.unwrap_or(10);
    thread::scope(|scope| {
        for _ in 0..cli.jobs.unwrap_or(2) {
            scope.spawn(|| {
                while let Some(some) = { left.lock().pop() } {
                    match run_real(programs, &some, cycles) {
                        Ok(played) => outcomes.lock().extend(played),
                        Err(error) => failed.lock().push(error),
                    }
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner();
    outcomes.sort_by_key(|outcome| cells.iter().position(|cell| *cell == outcome.cell));
    (outcomes, failed.into_inner())
}

fn table(outcomes: &[RealOutcome], watch: Stopwatch) -> String {
    let mut text = String::from(
        "lag,rate,protocol  cycles  of asked  pods  requests  by resolvers   lost  duplicated  invented  longest wait   s/cycle\n",
    );
    for outcome in outcomes {
        let RealOutcome {
            cell,
            asked,
            cycles,
            pods,
            tally,
            resolved,
            took_ms,
        } = outcome;
        let mark = if outcome.holds() { ' ' } else { '✗' };
        let _ = writeln!(
            text,
            "{:<17} {cycles:>7} {asked:>9} {pods:>5} {:>9} {resolved:>13} {:>6} {:>11} {:>9} {:>10} ms {:>9.1} {mark}",
            cell.to_string(),
            tally.sent,
            tally.lost,
            tally.duplicated,
            tally.invented,
            tally.longest_wait,
            *took_ms as f64 / 1000.0 / (*cycles).max(1) as f64,
        );
    }
    for outcome in outcomes {
        for loss in &outcome.tally.losses {
            let _ = writeln!(text, " ✗ {}: {loss}", outcome.cell);
        }
    }
    let sum = |of: fn(&RealOutcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let _ = writeln!(
        text,
        "{} cells with real processes, {} cycles; {} requests, {} lost, {} duplicated; {:.0} s",
        outcomes.len(),
        sum(|outcome| outcome.cycles),
        sum(|outcome| outcome.tally.sent),
        sum(|outcome| outcome.tally.lost),
        sum(|outcome| outcome.tally.duplicated),
        watch.elapsed().as_secs_f64(),
    );
    text
}
