//! Reduces a failing plan as far as it still fails in the same way.
//!
//! First with fewer faults, then with fewer steps, then with smaller numbers. "The seventh such
//! event" is a different one when earlier steps are left out, so with other steps a fault is tried
//! at every equivalent site.

mod fold;
mod smaller;

use std::slice::from_ref;

use crate::{
    Step, TraceEntry, Workload,
    generate::{FaultSite, fault_sites},
    judge::Violation,
    plan::{Nth, Plan, Rule},
};
pub(crate) use fold::named;
use smaller::{few_steps, fewer_rules, simpler, weight};

/// A plan and the workload that fails under it.
#[derive(Debug, Clone)]
pub struct Case {
    pub workload: Workload,
    pub plan: Plan,
}

/// Creates plans from the trace of a run without faults.
pub type PlanDraft<'a> = &'a dyn Fn(&[TraceEntry]) -> Vec<Plan>;

/// Sites that are tried in a run of other steps at most.
const MAX_SITES: usize = 48;

/// The smallest case found that fails like `found`, trying about `most` plans.
///
/// `play` drafts plans for a workload, plays them, and returns the violations of each plan all of
/// whose faults struck; nothing if the workload cannot be played.
pub fn shrink(
    case: Case,
    found: &Violation,
    most: usize,
    play: impl FnMut(&Workload, PlanDraft<'_>) -> Vec<(Plan, Vec<Violation>)>,
) -> Case {
    let mut search = Search {
        found,
        left: most,
        play,
    };
    let mut case = search.with_fewer_rules(case);
    case = search.with_fewer_steps(case);
    search.with_smaller_numbers(case)
}

struct Search<'a, F> {
    found: &'a Violation,
    left: usize,
    play: F,
}

impl<F> Search<'_, F>
where
    F: FnMut(&Workload, PlanDraft<'_>) -> Vec<(Plan, Vec<Violation>)>,
{
    /// The first plan that fails in the same way.
    fn first(&mut self, workload: &Workload, draft: PlanDraft<'_>) -> Option<Plan> {
        if self.left == 0 {
            return None;
        }
        let played = (self.play)(workload, draft);
        // A workload that cannot be played counts as one plan.
        self.left = self.left.saturating_sub(played.len().max(1));
        let found = self.found;
        let same = |(_, violations): &(Plan, Vec<Violation>)| {
            violations.iter().any(|violation| violation.is_like(found))
        };
        played.into_iter().find(same).map(|(plan, _)| plan)
    }

    /// A single rule if that is enough, else two, else as few as possible.
    fn with_fewer_rules(&mut self, mut case: Case) -> Case {
        while case.plan.rules.len() > 1 {
            let plans: Vec<_> = fewer_rules(&case.plan.rules);
            let plans: Vec<_> = plans.into_iter().map(|it| case.plan.with(it)).collect();
            match self.first(&case.workload, &|_| plans.clone()) {
                Some(plan) => case.plan = plan,
                None => return case,
            }
        }
        case
    }

    fn with_fewer_steps(&mut self, mut case: Case) -> Case {
        while case.workload.steps.len() > 1 {
            let mut smaller = None;
            for steps in with_less(&case.workload.steps) {
                let mut workload = case.workload.clone();
                workload.steps = steps;
                let draft = |entries: &[TraceEntry]| at_other_sites(&case.plan, entries);
                if let Some(plan) = self.first(&workload, &draft) {
                    smaller = Some(Case { workload, plan });
                    break;
                }
            }
            match smaller {
                Some(smaller) => case = smaller,
                None => return case,
            }
        }
        case
    }

    fn with_smaller_numbers(&mut self, mut case: Case) -> Case {
        loop {
            let mut plans = Vec::new();
            for (site, rule) in case.plan.rules.iter().enumerate() {
                let lighter = simpler(rule).into_iter();
                for other in lighter.filter(|other| weight(other) < weight(rule)) {
                    let mut rules = case.plan.rules.clone();
                    rules[site] = other;
                    plans.push(case.plan.with(rules));
                }
            }
            match self.first(&case.workload, &|_| plans.clone()) {
                Some(plan) => case.plan = plan,
                None => return case,
            }
        }
    }
}

/// Fewer steps: some are left out, or folded into the step that creates what they change.
fn with_less(steps: &[Step]) -> Vec<Vec<Step>> {
    let few = few_steps(steps.len()).into_iter();
    let few = few.map(|few| few.iter().map(|&step| steps[step].clone()).collect());
    few.chain(fold::fewer(steps)).collect()
}

/// The same faults at every equivalent site, the most similar first.
fn at_other_sites(plan: &Plan, entries: &[TraceEntry]) -> Vec<Plan> {
    let all = fault_sites(entries);
    let mut found: Vec<Vec<Rule>> = vec![Vec::new()];
    for rule in &plan.rules {
        let mut there: Vec<Rule> = match rule.nth {
            // A periodic rule is bound to no site.
            Nth::Every(_) => vec![rule.clone()],
            _ => all.iter().filter_map(|site| moved(rule, site)).collect(),
        };
        there.sort_by_key(|other| (other.filter != rule.filter, other.nth != rule.nth));
        let with = |rules: &Vec<Rule>| {
            let more = there.iter();
            let more = more.map(|rule| [&rules[..], from_ref(rule)].concat());
            more.collect::<Vec<_>>()
        };
        found = found.iter().flat_map(with).take(MAX_SITES).collect();
    }
    found.into_iter().map(|rules| plan.with(rules)).collect()
}

/// The same fault at another site, if the sites are equivalent.
fn moved(rule: &Rule, site: &FaultSite) -> Option<Rule> {
    let mut moved = site.rule(rule.action.clone());
    if let (Nth::Span(first, last), Nth::At(at)) = (rule.nth, moved.nth) {
        moved.nth = Nth::Span(at, at + (last - first));
    }
    is_equivalent(rule, &moved).then_some(moved)
}

fn is_equivalent(one: &Rule, other: &Rule) -> bool {
    one.point == other.point
        && one.filter.kind == other.filter.kind
        && one.filter.verb == other.filter.verb
        && one.actor == other.actor
}

#[cfg(test)]
mod tests;
