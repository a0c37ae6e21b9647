//! What came of a campaign.

use std::{collections::BTreeMap, fmt};

use neap_trial::{
    difference::Difference,
    judge::{Oracle, Share, Violation},
};
use serde::Serialize;

use crate::aside::{Began, Walks};

/// What came of a campaign.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    /// Different plans whose faults all struck.
    pub(crate) plans: usize,
    /// Plans of which a fault never struck: they say nothing.
    pub(crate) void: usize,
    /// Plans that were played twice and left the same trace.
    pub(crate) replayed: usize,
    /// How many plans there are of one fault, and how many of those were played.
    pub(crate) alone: (usize, usize),
    /// Plans under which something went wrong.
    pub(crate) violations: Vec<Finding>,
    /// How long it took, in seconds.
    pub(crate) seconds: f64,
    /// What a plan costs, in milliseconds of one core: half of them less.
    pub(crate) median_cost: f64,
    /// Fields that were compared, and those that were not.
    pub(crate) fields: Share,
    /// By workload.
    pub(crate) workloads: BTreeMap<String, Tally>,
    /// By kind of fault: how often each was played, by workload.
    pub(crate) matrix: BTreeMap<String, BTreeMap<String, usize>>,
    /// Whether a plan that must fail did; if not, nothing else here means anything.
    pub(crate) canary: bool,
    /// What is not compared.
    pub(crate) masks: &'static [&'static str],
    /// Runs without faults that went wrong, old plans that no longer strike, plans that leave
    /// another trace when they are played again.
    pub(crate) restless: Vec<String>,
    /// Declarations that were walked through, by workload.
    pub(crate) walked: BTreeMap<String, Walks>,
    /// Start states that were played, by workload.
    pub(crate) starts: BTreeMap<String, Began>,
}

/// What came of the plans of a workload.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Tally {
    pub(crate) plans: usize,
    pub(crate) writes: usize,
    pub(crate) violations: usize,
    /// How many pairs of faults there are, and how many were played.
    pub(crate) pairs: (usize, usize),
    /// What a plan costs, in milliseconds of one core: half of them less.
    pub(crate) median_cost: f64,
    /// What each cost, in microseconds.
    #[serde(skip)]
    pub(crate) costs: Vec<u64>,
    /// The longest that a step took to come to rest, in virtual seconds.
    pub(crate) slowest: f64,
}

/// A plan under which something went wrong.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) oracle: Oracle,
    pub(crate) says: Vec<Violation>,
    /// As it was found.
    pub(crate) plan: String,
    /// As small as it could be made; nothing if it was not tried.
    pub(crate) small: Option<(String, Vec<String>)>,
    /// Where that one parts from a run without faults, and a test that shows it.
    pub(crate) difference: Option<Difference>,
}

impl Report {
    /// Whether nothing went wrong.
    pub(crate) fn holds(&self) -> bool {
        let walked = self
            .walked
            .values()
            .all(|walks| walks.violations.is_empty());
        let started = self
            .starts
            .values()
            .all(|began| began.violations.is_empty());
        let played = self.plans > 0 || !self.walked.is_empty() || !self.starts.is_empty();
        let calm = self.violations.is_empty() && self.restless.is_empty();
        self.canary && calm && walked && started && played
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in self.violations.iter().take(20) {
            write!(f, "{finding}")?;
        }
        let left = self.violations.len().saturating_sub(20);
        if left > 0 {
            writeln!(f, "and {left} more")?;
        }
        for (name, tally) in &self.workloads {
            let Tally {
                plans,
                writes,
                violations,
                pairs: (pairs, paired),
                median_cost,
                slowest,
                ..
            } = tally;
            let mark = if *violations == 0 { '✓' } else { '✗' };
            writeln!(
                f,
                " {mark} {name}: {plans} plans on {writes} writes, {median_cost:.1} ms each, {violations} violations, {paired} of {pairs} pairs, at rest after {slowest:.0} s at the latest"
            )?;
        }
        if !self.canary {
            writeln!(
                f,
                " ✗ a plan that must fail did not: the trial sees nothing"
            )?;
        }
        for trouble in &self.restless {
            writeln!(f, " ✗ {trouble}")?;
        }
        for (name, walks) in &self.walked {
            write!(f, "{}", walks.of(name))?;
        }
        for (name, began) in &self.starts {
            write!(f, "{}", began.of(name))?;
        }
        let (all, played) = self.alone;
        let Share { compared, masked } = self.fields;
        let share = 100.0 * compared as f64 / (compared + masked).max(1) as f64;
        writeln!(
            f,
            "{} plans in {:.0} s, {:.1} ms of a core each (median); {played} of {all} single faults; {} void; {} replayed alike; {} violations; {share:.1} % of fields compared, all but {}",
            self.plans,
            self.seconds,
            self.median_cost,
            self.void,
            self.replayed,
            self.violations.len(),
            self.masks.join(", ")
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for violation in self.says.iter().take(4) {
            writeln!(f, "✗ {}", clipped(&violation.to_string()))?;
        }
        match &self.small {
            Some((plan, steps)) => {
                let plan = plan.replace('\n', "\n    ");
                writeln!(
                    f,
                    "    {}\n    // after: {}",
                    plan.trim_end(),
                    steps.join(", ")
                )?;
                if let Some(difference) = &self.difference {
                    for line in difference.to_string().trim_end().lines() {
                        writeln!(f, "    {}", clipped(line))?;
                    }
                }
                Ok(())
            }
            None => writeln!(f, "    {}", self.plan.trim_end().replace('\n', "\n    ")),
        }
    }
}

/// As much of a line as anybody reads; all of it is in the JSON.
fn clipped(line: &str) -> String {
    const MOST: usize = 400;
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
