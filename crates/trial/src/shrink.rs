//! Makes a plan as small as it can be while the same thing goes wrong.
//!
//! First with fewer faults, then with fewer steps, then with smaller numbers. A fault that is called
//! "the seventh of its like" is another one when steps before it are left out: so with other steps
//! it is tried at every place of its like that a run of these steps has.

mod fold;
mod smaller;

use std::slice::from_ref;

use crate::{
    Entry, Step, Workload,
    generate::{Place, places},
    judge::Violation,
    plan::{Nth, Plan, Rule},
};
pub(crate) use fold::named;
use smaller::{few_steps, fewer_rules, simpler, weight};

/// A plan and the workload it breaks.
#[derive(Debug, Clone)]
pub struct Case {
    /// What is done.
    pub workload: Workload,
    /// What goes wrong meanwhile.
    pub plan: Plan,
}

/// Makes plans of what a run without faults shows.
pub type Draft<'a> = &'a dyn Fn(&[Entry]) -> Vec<Plan>;

/// At most so many places are tried in a run of other steps.
const PLACES: usize = 48;

/// The smallest case found that fails like `found`, trying about so many plans at most.
///
/// `play` drafts plans for a workload, plays them, and says what is wrong with each of which every
/// fault struck; nothing if the workload cannot be played.
pub fn shrink(
    case: Case,
    found: &Violation,
    most: usize,
    play: impl FnMut(&Workload, Draft<'_>) -> Vec<(Plan, Vec<Violation>)>,
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
    F: FnMut(&Workload, Draft<'_>) -> Vec<(Plan, Vec<Violation>)>,
{
    /// The first of the plans that fails in the same way.
    fn first(&mut self, workload: &Workload, draft: Draft<'_>) -> Option<Plan> {
        if self.left == 0 {
            return None;
        }
        let played = (self.play)(workload, draft);
        // A workload that cannot be played costs something, too.
        self.left = self.left.saturating_sub(played.len().max(1));
        let found = self.found;
        let same = |(_, violations): &(Plan, Vec<Violation>)| {
            violations.iter().any(|violation| violation.is_like(found))
        };
        played.into_iter().find(same).map(|(plan, _)| plan)
    }

    /// One rule alone if that does, or two, or what is left when none can be spared.
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
                let draft = |entries: &[Entry]| elsewhere(&case.plan, entries);
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
            for (place, rule) in case.plan.rules.iter().enumerate() {
                let lighter = simpler(rule).into_iter();
                for other in lighter.filter(|other| weight(other) < weight(rule)) {
                    let mut rules = case.plan.rules.clone();
                    rules[place] = other;
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

/// Fewer steps: some of them left out, or folded into one that makes what they change.
fn with_less(steps: &[Step]) -> Vec<Vec<Step>> {
    let few = few_steps(steps.len()).into_iter();
    let few = few.map(|few| few.iter().map(|&step| steps[step].clone()).collect());
    few.chain(fold::fewer(steps)).collect()
}

/// The same faults wherever something of their like passes: the most alike first.
fn elsewhere(plan: &Plan, entries: &[Entry]) -> Vec<Plan> {
    let all = places(entries);
    let mut found: Vec<Vec<Rule>> = vec![Vec::new()];
    for rule in &plan.rules {
        let mut there: Vec<Rule> = match rule.nth {
            // It means no place in particular.
            Nth::Every(_) => vec![rule.clone()],
            _ => all.iter().filter_map(|place| moved(rule, place)).collect(),
        };
        there.sort_by_key(|other| (other.filter != rule.filter, other.nth != rule.nth));
        let with = |rules: &Vec<Rule>| {
            let more = there.iter();
            let more = more.map(|rule| [&rules[..], from_ref(rule)].concat());
            more.collect::<Vec<_>>()
        };
        found = found.iter().flat_map(with).take(PLACES).collect();
    }
    found.into_iter().map(|rules| plan.with(rules)).collect()
}

/// The same fault at another place, if that is of the same like.
fn moved(rule: &Rule, place: &Place) -> Option<Rule> {
    let mut moved = place.rule(rule.action.clone());
    if let (Nth::Span(first, last), Nth::At(at)) = (rule.nth, moved.nth) {
        moved.nth = Nth::Span(at, at + (last - first));
    }
    is_of_the_same_like(rule, &moved).then_some(moved)
}

fn is_of_the_same_like(one: &Rule, other: &Rule) -> bool {
    one.point == other.point
        && one.filter.kind == other.filter.kind
        && one.filter.verb == other.filter.verb
        && one.actor == other.actor
}

#[cfg(test)]
mod tests;
