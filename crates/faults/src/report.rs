//! What came of a campaign.

mod figures;

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use neap_trial::{
    difference::Difference,
    judge::{Allowance, Oracle, Share, Violation},
    plan::Plan,
};
use serde::Serialize;

use crate::aside::{Began, Walks};
use figures::Figure;

/// What came of a campaign.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    /// Different plans whose faults all struck.
    pub(crate) plans: usize,
    /// Plans of which a fault never struck: they say nothing.
    pub(crate) void: usize,
    /// Plans that were played twice and left the same trace.
    pub(crate) replayed: usize,
    /// Plans that were played twice.
    pub(crate) again: usize,
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
    /// What is allowed to differ.
    pub(crate) allowances: &'static [Allowance],
    /// What was asked, and how far it is met.
    pub(crate) figures: Vec<Figure>,
    /// Marks of the plans that were counted.
    #[serde(skip)]
    pub(crate) counted: HashSet<u64>,
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
        let played = self.plans > 0 || !self.walked.is_empty() || !self.starts.is_empty();
        self.canary && played && self.alarms() == 0
    }

    /// How often something went wrong.
    fn alarms(&self) -> usize {
        let walked = self.walked.values().map(|walks| walks.wrong);
        let started = self.starts.values().map(|began| began.wrong);
        let aside: usize = walked.chain(started).sum();
        self.violations.len() + self.restless.len() + aside
    }

    /// Whether this plan was not counted before, by whatever name.
    pub(crate) fn is_new(&mut self, plan: &Plan) -> bool {
        let mut mark = DefaultHasher::new();
        (&plan.workload, plan.seed).hash(&mut mark);
        for rule in &plan.rules {
            rule.to_string().hash(&mut mark);
        }
        self.counted.insert(mark.finish())
    }

    /// Holds what came of it against what was asked of so much time, or of what it took if that was
    /// longer.
    pub(crate) fn measure(&mut self, budget: Duration) {
        let took = Duration::from_secs_f64(self.seconds);
        self.figures = figures::of(self, budget.max(took));
    }

    /// Whether all that was asked is met.
    pub(crate) fn is_met(&self) -> bool {
        !self.figures.is_empty() && self.figures.iter().all(|figure| figure.holds)
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

/// As much of a line as anybody reads; all of it is in the JSON.
fn clipped(line: &str) -> String {
    const MOST: usize = 400;
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
