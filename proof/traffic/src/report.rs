//! The results as text.

use std::{fmt::Write, time::Duration};

use neap_traffic::SimulatedOutcome;

/// One line, printed as soon as a cell is done.
pub(crate) fn line(outcome: &SimulatedOutcome) -> String {
    let SimulatedOutcome {
        cell,
        asked,
        cycles,
        tally,
        took_ms,
        ..
    } = outcome;
    let mark = if outcome.holds() { '✓' } else { '✗' };
    format!(
        " {mark} {:<12} {cycles} of {asked} cycles in {:.1} s: {} lost, {} duplicated of {}",
        cell.to_string(),
        *took_ms as f64 / 1000.0,
        tally.lost,
        tally.duplicated,
        tally.sent,
    )
}

/// Says so if all cells together ran fewer cycles than `least`.
pub(crate) fn too_few(outcomes: &[SimulatedOutcome], least: u64) -> Option<String> {
    let played: u64 = outcomes.iter().map(|outcome| outcome.cycles).sum();
    (played < least).then(|| format!("{played} cycles were played, of at least {least}"))
}

/// The whole table.
pub(crate) fn table(outcomes: &[SimulatedOutcome], took: Duration) -> String {
    let mut text = String::from(
        "lag,rate,protocol  cycles   of asked      requests            carried   lost  duplicated  invented  unproved  longest wait   ms/cycle\n",
    );
    for outcome in outcomes {
        let SimulatedOutcome {
            cell,
            asked,
            cycles,
            tally,
            unproved,
            took_ms,
            ..
        } = outcome;
        let _ = writeln!(
            text,
            "{:<17} {cycles:>7} {asked:>10} {:>13} {:>18} {:>6} {:>11} {:>9} {unproved:>9} {:>11} ms {:>10.1}",
            cell.to_string(),
            tally.sent,
            tally.through,
            tally.lost,
            tally.duplicated,
            tally.invented,
            tally.longest_wait,
            *took_ms as f64 / (*cycles).max(1) as f64,
        );
    }
    for outcome in outcomes {
        for loss in &outcome.tally.losses {
            let _ = writeln!(text, " ✗ {}: {loss}", outcome.cell);
        }
    }
    let sum = |of: fn(&SimulatedOutcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let whole = outcomes.iter().filter(|outcome| outcome.is_whole()).count();
    let fewest = outcomes.iter().min_by_key(|outcome| outcome.cycles);
    let _ = writeln!(
        text,
        "{} cells, {whole} of them whole; {} of the {} cycles asked for were played, {} of {} in the cell with the fewest; {} requests, {} of them carried; {} lost, {} duplicated; {:.0} s",
        outcomes.len(),
        sum(|outcome| outcome.cycles),
        sum(|outcome| outcome.asked),
        fewest.map_or(0, |outcome| outcome.cycles),
        fewest.map_or(0, |outcome| outcome.asked),
        sum(|outcome| outcome.tally.sent),
        sum(|outcome| outcome.tally.through),
        sum(|outcome| outcome.tally.lost),
        sum(|outcome| outcome.tally.duplicated),
        took.as_secs_f64(),
    );
    text
}

#[cfg(test)]
mod tests {
    use neap_traffic::{Cell, Deviation, RunOptions, run_cell};

    use super::*;

    #[test]
    fn too_few_cycles_are_reported() {
        let outcome = run_cell(RunOptions {
            cell: Cell::all()[0],
            cycles: 1,
            min_cycles: 0,
            budget: None,
            seed: 7,
            deviation: Deviation::None,
        });
        let outcomes = vec![outcome.unwrap(); 3];
        assert_eq!(too_few(&outcomes, 3), None);
        let why = too_few(&outcomes, 4).unwrap();
        assert_eq!(why, "3 cycles were played, of at least 4");
        assert!(too_few(&[], 1).is_some());
    }
}
