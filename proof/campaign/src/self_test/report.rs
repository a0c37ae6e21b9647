//! The result of the self-test.

use std::fmt;

use neap_trial::judge::Oracle;
use serde::Serialize;

use super::{
    coverage::{Cell, Matrix},
    hunt::{ControlRun, Hunt, ReducedFailure},
    replays::Replays,
};

#[derive(Debug)]
pub(super) struct SelfTestReport {
    pub(super) canary: bool,
    pub(super) hunts: Vec<Hunt>,
    pub(super) calm: ControlRun,
    /// None if only some mistakes were searched for.
    pub(super) rest: Option<OtherChecks>,
    pub(super) seconds: f64,
    pub(super) core_seconds: f64,
}

/// The checks that need no planted mistakes.
#[derive(Debug, Serialize)]
pub(super) struct OtherChecks {
    pub(super) replays: Replays,
    pub(super) coverage: Matrix,
}

/// A figure and its requirement.
#[derive(Debug, Serialize)]
pub(super) struct FigureRow {
    figure: &'static str,
    ours: String,
    asked: &'static str,
    holds: bool,
}

/// The JSON form.
#[derive(Debug, Serialize)]
pub(super) struct JsonReport<'a> {
    rows: Vec<FigureRow>,
    bugs: &'a [Hunt],
    calm: &'a ControlRun,
    rest: Option<&'a OtherChecks>,
    seconds: f64,
    core_seconds: f64,
}

/// Required size of reduced failures.
const MAX_RULES: usize = 2;
const MAX_STEPS: usize = 2;
/// Required time to reduce a failure.
const MAX_SECONDS: f64 = 5.0;

impl SelfTestReport {
    pub(super) fn holds(&self) -> bool {
        self.rows().iter().all(|row| row.holds)
    }

    pub(super) fn json(&self) -> JsonReport<'_> {
        JsonReport {
            rows: self.rows(),
            bugs: &self.hunts,
            calm: &self.calm,
            rest: self.rest.as_ref(),
            seconds: self.seconds,
            core_seconds: self.core_seconds,
        }
    }

    fn rows(&self) -> Vec<FigureRow> {
        let canary = if self.canary { "fails" } else { "passes" };
        let mut rows = vec![row(
            "a plan that must fail",
            canary.to_owned(),
            "fails",
            self.canary,
        )];
        let (all, guards) = (self.hunts.len(), self.count(|hunt| hunt.guard));
        let enough = (all >= 40 && guards * 2 >= all) || self.rest.is_none();
        let ours = format!("{all}, {guards} of them guards removed");
        rows.push(row(
            "seeded bugs",
            ours,
            "≥ 40, half of them guards",
            enough,
        ));
        let caught = self.count(|hunt| hunt.caught);
        rows.push(share("caught by an oracle that was named", caught, all, 95));
        rows.extend(self.rest.iter().map(|_| self.oracles()));
        let (plans, void) = (self.calm.plans, self.calm.void);
        let wrong = self.calm.violations.len();
        let ours = format!("{wrong} in {plans} plans, {void} void");
        rows.push(row("violations without a bug", ours, "0", wrong == 0));
        rows.extend(self.shrinking());
        rows.extend(self.rest.iter().flat_map(OtherChecks::rows));
        rows
    }

    /// An oracle that never caught anything may be blind.
    fn oracles(&self) -> FigureRow {
        let has_caught = |oracle: &Oracle| {
            let id = oracle.id();
            let named = |hunt: &&Hunt| hunt.expect.iter().any(|expected| expected == id);
            let caught = self.hunts.iter().filter(|hunt| hunt.caught);
            caught.filter(named).any(|hunt| hunt.spoke.contains(id))
        };
        let (those, blind): (Vec<Oracle>, Vec<Oracle>) =
            Oracle::ALL.into_iter().partition(has_caught);
        let mut ours = format!("{} of {}", those.len(), Oracle::ALL.len());
        for oracle in &blind {
            ours.push_str(", not ");
            ours.push_str(oracle.id());
        }
        row("oracles that caught one", ours, "all", blind.is_empty())
    }

    fn shrinking(&self) -> [FigureRow; 2] {
        let small: Vec<&ReducedFailure> = self.hunts.iter().flat_map(|hunt| &hunt.small).collect();
        let is_small =
            |small: &&&ReducedFailure| small.rules <= MAX_RULES && small.steps.len() <= MAX_STEPS;
        let become_so = small.iter().filter(is_small).count();
        let slowest = small.iter().map(|small| small.seconds);
        let slowest = slowest.fold(0.0, f64::max);
        let ours = format!("{slowest:.1} s");
        [
            share(
                "shrunk to ≤ 2 rules and ≤ 2 steps",
                become_so,
                small.len(),
                90,
            ),
            row("slowest to shrink", ours, "≤ 5 s", slowest <= MAX_SECONDS),
        ]
    }

    fn count(&self, test: impl Fn(&Hunt) -> bool) -> usize {
        self.hunts.iter().filter(|hunt| test(hunt)).count()
    }
}

impl OtherChecks {
    fn rows(&self) -> [FigureRow; 2] {
        let Replays {
            plans,
            played,
            equal,
            ..
        } = &self.replays;
        let ours = format!("{equal} of {played} runs of {plans} plans");
        let exact = equal == played && *played > 0;
        let asked = "all, of 200 plans × 3 × 2 processes";
        let (mut blank, mut struck, mut impossible) = (0, 0, 0);
        for cell in self.coverage.values().flat_map(|row| row.values()) {
            match cell {
                Cell::Blank => blank += 1,
                Cell::Struck(_) => struck += 1,
                Cell::Impossible(_) => impossible += 1,
            }
        }
        let cells = format!("{blank} ({struck} struck, {impossible} impossible)");
        [
            row("replays identical", ours, asked, exact),
            row(
                "blank cells, fault × workload",
                cells,
                "0",
                blank == 0 && struck > 0,
            ),
        ]
    }
}

fn row(figure: &'static str, ours: String, asked: &'static str, holds: bool) -> FigureRow {
    FigureRow {
        figure,
        ours,
        asked,
        holds,
    }
}

fn share(figure: &'static str, some: usize, all: usize, percent: usize) -> FigureRow {
    let asked = match percent {
        95 => "≥ 95 %",
        _ => "≥ 90 %",
    };
    FigureRow {
        figure,
        ours: format!(
            "{some} of {all} ({:.1} %)",
            100.0 * some as f64 / all.max(1) as f64
        ),
        asked,
        holds: some * 100 >= all * percent && all > 0,
    }
}

impl fmt::Display for SelfTestReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for hunt in &self.hunts {
            write!(f, "{hunt}")?;
        }
        for (plan, violations) in self.calm.violations.iter().take(10) {
            writeln!(f, "✗ without any bug:\n{plan}")?;
            for violation in violations.iter().take(4) {
                writeln!(f, "  {violation}")?;
            }
        }
        if let Some(rest) = &self.rest {
            write!(f, "{rest}")?;
        }
        writeln!(f)?;
        for row in self.rows() {
            let mark = if row.holds { '✓' } else { '✗' };
            let FigureRow {
                figure,
                ours,
                asked,
                ..
            } = row;
            writeln!(f, " {mark} {figure:36} {ours:40} required: {asked}")?;
        }
        let (seconds, core) = (self.seconds, self.core_seconds);
        writeln!(f, "in {seconds:.0} s, {core:.0} s of CPU time")
    }
}

impl fmt::Display for Hunt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            class,
            plans,
            seconds,
            ..
        } = self;
        let spoke: Vec<_> = self.spoke.iter().copied().collect();
        let spoke = spoke.join(" ");
        let expected = self.expect.join(" ");
        let mark = if self.caught { '✓' } else { '✗' };
        write!(
            f,
            " {mark} {name:22} {class:42} {plans:5} plans {seconds:6.1} s"
        )?;
        writeln!(f, "  expected {expected}, reported by: {spoke}")?;
        if let Some(small) = &self.small {
            let rules = small.plan.lines().skip(2).collect::<Vec<_>>().join("; ");
            let steps = small.steps.join(", ");
            writeln!(f, "     {rules} after: {steps} ({:.1} s)", small.seconds)?;
        }
        Ok(())
    }
}

impl fmt::Display for OtherChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for plan in self.replays.differing.iter().take(10) {
            writeln!(f, "✗ produces different traces:\n{plan}")?;
        }
        writeln!(f)?;
        for (kind, row) in &self.coverage {
            let cells = row.iter().map(|(workload, cell)| match cell {
                Cell::Struck(times) => format!("{workload} {times}"),
                Cell::Impossible(why) => format!("{workload} – ({why})"),
                Cell::Blank => format!("{workload} ✗"),
            });
            let cells: Vec<_> = cells.collect();
            writeln!(f, "{kind:16} {}", cells.join(", "))?;
        }
        Ok(())
    }
}
