//! What came of the trial of the trial.

use std::fmt;

use serde::Serialize;

use super::{
    coverage::{Cell, Matrix},
    hunt::{Calm, Hunt, Small},
    replays::Replays,
};

#[derive(Debug)]
pub(super) struct Report {
    pub(super) canary: bool,
    /// Whether all mistakes of the table were looked for.
    pub(super) whole: bool,
    pub(super) hunts: Vec<Hunt>,
    pub(super) calm: Calm,
    pub(super) replays: Replays,
    pub(super) coverage: Matrix,
}

/// One figure.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    figure: &'static str,
    ours: String,
    asked: &'static str,
    holds: bool,
}

/// For programs.
#[derive(Debug, Serialize)]
pub(super) struct Told<'a> {
    rows: Vec<Row>,
    bugs: &'a [Hunt],
    calm: &'a Calm,
    replays: &'a Replays,
    coverage: &'a Matrix,
}

/// How small failures are to become.
const RULES: usize = 2;
const STEPS: usize = 2;
/// In how many seconds.
const SECONDS: f64 = 5.0;

impl Report {
    pub(super) fn holds(&self) -> bool {
        self.rows().iter().all(|row| row.holds)
    }

    pub(super) fn told(&self) -> Told<'_> {
        Told {
            rows: self.rows(),
            bugs: &self.hunts,
            calm: &self.calm,
            replays: &self.replays,
            coverage: &self.coverage,
        }
    }

    fn rows(&self) -> Vec<Row> {
        let row = |figure, ours: String, asked, holds| Row {
            figure,
            ours,
            asked,
            holds,
        };
        let mut rows = vec![row(
            "a plan that must fail",
            if self.canary { "fails" } else { "passes" }.to_owned(),
            "fails",
            self.canary,
        )];
        let (all, guards) = (self.hunts.len(), self.count(|hunt| hunt.guard));
        let enough = (all >= 40 && guards * 2 >= all) || !self.whole;
        let ours = format!("{all}, {guards} of them guards removed");
        rows.push(row(
            "seeded bugs",
            ours,
            "≥ 40, half of them guards",
            enough,
        ));
        let caught = self.count(|hunt| hunt.caught);
        rows.push(share(
            "caught by the oracle that was named",
            caught,
            all,
            95,
        ));
        let Calm {
            plans,
            void,
            violations,
        } = &self.calm;
        let ours = format!("{} in {plans} plans, {void} void", violations.len());
        rows.push(row(
            "violations without a bug",
            ours,
            "0",
            violations.is_empty(),
        ));
        let small: Vec<&Small> = self
            .hunts
            .iter()
            .filter_map(|hunt| hunt.small.as_ref())
            .collect();
        let is_small = |small: &&&Small| small.rules <= RULES && small.steps.len() <= STEPS;
        let become_so = small.iter().filter(is_small).count();
        rows.push(share(
            "shrunk to ≤ 2 rules and ≤ 2 steps",
            become_so,
            small.len(),
            90,
        ));
        let slowest = small.iter().map(|small| small.seconds).fold(0.0, f64::max);
        rows.push(row(
            "slowest to shrink",
            format!("{slowest:.1} s"),
            "≤ 5 s",
            slowest <= SECONDS,
        ));
        let Replays {
            plans,
            played,
            equal,
            ..
        } = &self.replays;
        let ours = format!("{equal} of {played} runs of {plans} plans");
        let exact = equal == played && *played > 0;
        rows.push(row(
            "replays identical",
            ours,
            "all, 200 plans × 3 × 2 processes",
            exact,
        ));
        let cells = self.coverage.values().flat_map(|row| row.values());
        let (mut blank, mut struck, mut impossible) = (0, 0, 0);
        for cell in cells {
            match cell {
                Cell::Blank => blank += 1,
                Cell::Struck(_) => struck += 1,
                Cell::Impossible(_) => impossible += 1,
            }
        }
        let ours = format!("{blank} ({struck} struck, {impossible} cannot be)");
        rows.push(row(
            "blank cells, fault × workload",
            ours,
            "0",
            blank == 0 && struck > 0,
        ));
        rows
    }

    fn count(&self, test: impl Fn(&Hunt) -> bool) -> usize {
        self.hunts.iter().filter(|hunt| test(hunt)).count()
    }
}

fn share(figure: &'static str, some: usize, all: usize, percent: usize) -> Row {
    let asked = match percent {
        95 => "≥ 95 %",
        _ => "≥ 90 %",
    };
    Row {
        figure,
        ours: format!(
            "{some} of {all} ({:.1} %)",
            100.0 * some as f64 / all.max(1) as f64
        ),
        asked,
        holds: some * 100 >= all * percent && all > 0,
    }
}

impl fmt::Display for Report {
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
        for plan in self.replays.differing.iter().take(10) {
            writeln!(f, "✗ gives another trace each time:\n{plan}")?;
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
        writeln!(f)?;
        for row in self.rows() {
            let mark = if row.holds { '✓' } else { '✗' };
            let Row {
                figure,
                ours,
                asked,
                ..
            } = row;
            writeln!(f, " {mark} {figure:36} {ours:40} asked: {asked}")?;
        }
        Ok(())
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
        writeln!(f, "  expected {expected}, spoke: {spoke}")?;
        if let Some(small) = &self.small {
            let rules = small.plan.lines().skip(2).collect::<Vec<_>>().join("; ");
            let steps = small.steps.join(", ");
            writeln!(f, "     {rules} after: {steps} ({:.1} s)", small.seconds)?;
        }
        Ok(())
    }
}
