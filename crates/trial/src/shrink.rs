//! Makes a plan as small as it can be while the same thing goes wrong.

use std::time::Duration;

use crate::{
    Workload,
    judge::Violation,
    plan::{Action, Nth, Plan, Rule},
};

/// A plan and the workload it breaks.
#[derive(Debug, Clone)]
pub struct Case {
    /// What is done.
    pub workload: Workload,
    /// What goes wrong meanwhile.
    pub plan: Plan,
}

/// The smallest case found that `fails` in the same way, trying at most so many.
pub fn shrink(
    case: Case,
    found: &Violation,
    most: usize,
    mut fails: impl FnMut(&Case) -> Vec<Violation>,
) -> Case {
    let mut left = most;
    let mut same = |case: &Case| {
        if left == 0 {
            return false;
        }
        left -= 1;
        let violations = fails(case);
        violations.iter().any(|violation| is_like(violation, found))
    };
    let mut case = case;
    loop {
        let before = size(&case);
        for smaller in rules(&case)
            .into_iter()
            .chain(steps(&case))
            .chain(numbers(&case))
        {
            if size(&smaller) < size(&case) && same(&smaller) {
                case = smaller;
                break;
            }
        }
        if size(&case) == before {
            return case;
        }
    }
}

/// The same oracle about the same kind: anything else is another mistake.
fn is_like(one: &Violation, other: &Violation) -> bool {
    one.oracle == other.oracle && one.kind == other.kind
}

fn size(case: &Case) -> (usize, usize, u64) {
    let numbers = case.plan.rules.iter().map(weight).sum();
    (case.plan.rules.len(), case.workload.steps.len(), numbers)
}

/// With one rule less.
fn rules(case: &Case) -> Vec<Case> {
    let without = |index: usize| {
        let mut rules = case.plan.rules.clone();
        rules.remove(index);
        Case {
            plan: case.plan.with(rules),
            workload: case.workload.clone(),
        }
    };
    (0..case.plan.rules.len()).map(without).collect()
}

/// With one step less, the last ones first: what comes after the mistake is not needed.
fn steps(case: &Case) -> Vec<Case> {
    let without = |index: usize| {
        let mut workload = case.workload.clone();
        workload.steps.remove(index);
        Case {
            plan: case.plan.clone(),
            workload,
        }
    };
    (0..case.workload.steps.len()).rev().map(without).collect()
}

/// With smaller numbers in one rule.
fn numbers(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    for (index, rule) in case.plan.rules.iter().enumerate() {
        for smaller in simpler(rule) {
            let mut rules = case.plan.rules.clone();
            rules[index] = smaller;
            all.push(Case {
                plan: case.plan.with(rules),
                workload: case.workload.clone(),
            });
        }
    }
    all
}

fn simpler(rule: &Rule) -> Vec<Rule> {
    let action = |action: Action| Rule {
        action,
        ..rule.clone()
    };
    let mut all = Vec::new();
    match &rule.action {
        Action::CrashStale(events, kinds) if *events > 1 => {
            all.push(action(Action::Crash));
            all.push(action(Action::CrashStale(events / 2, kinds.clone())));
            all.push(action(Action::CrashStale(events - 1, kinds.clone())));
        }
        Action::CrashStale(..) => all.push(action(Action::Crash)),
        Action::Conflict(times) if *times > 1 => all.push(action(Action::Conflict(times / 2))),
        Action::Delay(time) if *time > SECOND => all.push(action(Action::Delay(*time / 2))),
        Action::Pause(time) if *time > SECOND => all.push(action(Action::Pause(*time / 2))),
        Action::Merge(time) if *time > SECOND => all.push(action(Action::Merge(*time / 2))),
        _ => {}
    }
    if let Nth::At(nth) = rule.nth
        && nth > 1
    {
        for nth in [1, nth - 1] {
            all.push(Rule {
                nth: Nth::At(nth),
                ..rule.clone()
            });
        }
    }
    all
}

const SECOND: Duration = Duration::from_secs(1);

fn weight(rule: &Rule) -> u64 {
    let action = match &rule.action {
        Action::CrashStale(events, _) => 2 + *events as u64,
        Action::Conflict(times) => u64::from(*times),
        Action::Delay(time) | Action::Pause(time) | Action::Merge(time) => time.as_secs(),
        Action::Lag(events, _, time) => *events as u64 + time.as_secs(),
        _ => 1,
    };
    let nth = match rule.nth {
        Nth::At(nth) => u64::from(nth),
        _ => 1,
    };
    action + nth
}
