//! The result of a campaign.

mod figures;

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use neap_trial::{
    difference::Difference,
    judge::{Allowance, FieldCoverage, Oracle, Violation},
    plan::Plan,
};
use serde::Serialize;

use crate::extra_runs::{StartStateTotals, WalkTotals};
use figures::Figure;

/// The result of a campaign.
#[derive(Debug, Default, Serialize)]
pub(crate) struct CampaignReport {
    /// Distinct plans all of whose faults struck.
    pub(crate) plans: usize,
    /// Plans of which a fault never struck: they prove nothing.
    pub(crate) void: usize,
    /// Plans that were played twice and produced the same trace.
    pub(crate) replayed: usize,
    /// Plans that were played twice.
    pub(crate) again: usize,
    /// The number of single faults, and how many of them were played.
    pub(crate) alone: (usize, usize),
    /// Plans that failed.
    pub(crate) violations: Vec<Finding>,
    pub(crate) seconds: f64,
    /// Median CPU time of a plan, in milliseconds.
    pub(crate) median_cost: f64,
    pub(crate) fields: FieldCoverage,
    pub(crate) workloads: BTreeMap<String, WorkloadTally>,
    /// How often each kind of fault was played, by workload.
    pub(crate) matrix: BTreeMap<String, BTreeMap<String, usize>>,
    /// Whether a plan that must fail did; if not, nothing else here means anything.
    pub(crate) canary: bool,
    /// The permitted differences.
    pub(crate) allowances: &'static [Allowance],
    /// The measured figures and their requirements.
    pub(crate) figures: Vec<Figure>,
    /// Hashes of the plans that were counted.
    #[serde(skip)]
    pub(crate) counted: HashSet<u64>,
    /// Runs without faults that went wrong, plans of the corpus that no longer strike, and plans
    /// that produce another trace when they are played again.
    pub(crate) restless: Vec<String>,
    pub(crate) walked: BTreeMap<String, WalkTotals>,
    pub(crate) starts: BTreeMap<String, StartStateTotals>,
}

/// The result of the plans of a workload.
#[derive(Debug, Default, Serialize)]
pub(crate) struct WorkloadTally {
    pub(crate) plans: usize,
    pub(crate) writes: usize,
    pub(crate) violations: usize,
    /// The number of pairs of faults, and how many of them were played.
    pub(crate) pairs: (usize, usize),
    /// Median CPU time of a plan, in milliseconds.
    pub(crate) median_cost: f64,
    /// CPU time of each plan, in microseconds.
    #[serde(skip)]
    pub(crate) costs: Vec<u64>,
    /// The longest time a step took to come to rest, in virtual seconds.
    pub(crate) slowest: f64,
}

/// A plan that failed.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) oracle: Oracle,
    pub(crate) says: Vec<Violation>,
    /// As it was found.
    pub(crate) plan: String,
    /// The reduced plan and its steps; none if it was not reduced.
    pub(crate) small: Option<(String, Vec<String>)>,
    /// How the reduced plan differs from a run without faults, and a test that reproduces it.
    pub(crate) difference: Option<Difference>,
}

impl CampaignReport {
    pub(crate) fn holds(&self) -> bool {
        let played = self.plans > 0 || !self.walked.is_empty() || !self.starts.is_empty();
        self.canary && played && self.alarms() == 0
    }

    /// The number of failures of any kind.
    fn alarms(&self) -> usize {
        let walked = self.walked.values().map(|walks| walks.wrong);
        let started = self.starts.values().map(|began| began.wrong);
        let extra: usize = walked.chain(started).sum();
        self.violations.len() + self.restless.len() + extra
    }

    /// Whether this plan was not counted before, under any name.
    pub(crate) fn is_new(&mut self, plan: &Plan) -> bool {
        let mut mark = DefaultHasher::new();
        (&plan.workload, plan.seed).hash(&mut mark);
        for rule in &plan.rules {
            rule.to_string().hash(&mut mark);
        }
        self.counted.insert(mark.finish())
    }

    /// Compares the results with the requirements, scaled to `budget`, or to the elapsed time if
    /// that is longer.
    pub(crate) fn measure(&mut self, budget: Duration) {
        let took = Duration::from_secs_f64(self.seconds);
        self.figures = figures::of(self, budget.max(took));
    }

    /// Whether every requirement is met.
    pub(crate) fn is_met(&self) -> bool {
        !self.figures.is_empty() && self.figures.iter().all(|figure| figure.holds)
    }
}

impl fmt::Display for CampaignReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in self.violations.iter().take(20) {
            write!(f, "{finding}")?;
        }
        let left = self.violations.len().saturating_sub(20);
        if left > 0 {
            writeln!(f, "and {left} more")?;
        }
        for (name, tally) in &self.workloads {
            let WorkloadTally {
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
            writeln!(f, " ✗ a plan that must fail did not: the trial is blind")?;
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
        let (plans, void, seconds) = (self.plans, self.void, self.seconds);
        let violations = self.violations.len();
        writeln!(
            f,
            "{plans} plans in {seconds:.0} s; {played} of {all} single faults; {void} void; {violations} violations"
        )?;
        let allowed = self.allowances.iter().map(|allowance| allowance.what);
        let allowed: Vec<_> = allowed.collect();
        writeln!(f, "allowed to differ: {}", allowed.join("; "))?;
        for figure in &self.figures {
            write!(f, "{figure}")?;
        }
        Ok(())
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

/// The part of a line that fits on a screen; the JSON has all of it.
fn clipped(line: &str) -> String {
    const MAX_LINE_LENGTH: usize = 400;
    match line.char_indices().nth(MAX_LINE_LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
