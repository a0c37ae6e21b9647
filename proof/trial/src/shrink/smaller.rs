//! Smaller candidates to try in place of a plan.

use std::time::Duration;

use crate::plan::{Action, Nth, Rule};

const SECOND: Duration = Duration::from_secs(1);

/// Each rule alone, then any two, then all but one.
pub(super) fn fewer_rules(rules: &[Rule]) -> Vec<Vec<Rule>> {
    let mut all: Vec<Vec<Rule>> = rules.iter().map(|rule| vec![rule.clone()]).collect();
    if rules.len() > 2 {
        for (place, first) in rules.iter().enumerate() {
            for second in &rules[place + 1..] {
                all.push(vec![first.clone(), second.clone()]);
            }
        }
    }
    if rules.len() > 3 {
        for place in 0..rules.len() {
            let mut without = rules.to_vec();
            without.remove(place);
            all.push(without);
        }
    }
    all
}

/// One step, then any two, then all but one. Combinations with the first step, which usually
/// creates what the others change, come first, and later steps are left out first.
pub(super) fn few_steps(steps: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = (0..steps).map(|step| vec![step]).collect();
    if steps > 2 {
        for first in 0..steps {
            all.extend((first + 1..steps).map(|second| vec![first, second]));
        }
    }
    if steps > 3 {
        for without in (0..steps).rev() {
            all.push((0..steps).filter(|&step| step != without).collect());
        }
    }
    all
}

/// The same rule with smaller numbers.
pub(super) fn simpler(rule: &Rule) -> Vec<Rule> {
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

/// The size of the numbers of a rule.
pub(super) fn weight(rule: &Rule) -> u128 {
    let action = match &rule.action {
        Action::CrashStale(events, _) => 2 + *events as u128,
        Action::Conflict(times) => u128::from(*times),
        Action::Delay(time) | Action::Pause(time) | Action::Merge(time) => time.as_millis(),
        Action::Lag(events, _, time) => *events as u128 + time.as_millis(),
        _ => 1,
    };
    let nth = match rule.nth {
        Nth::At(nth) => u128::from(nth),
        _ => 1,
    };
    action + nth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_steps_are_tried_before_many() {
        let all = few_steps(4);
        assert_eq!(all.len(), 4 + 6 + 4);
        assert!(all.is_sorted_by_key(Vec::len), "{all:?}");
        assert_eq!(all[4], [0, 1]);
        assert_eq!(all[10], [0, 1, 2], "what comes late is left out first");
    }

    #[test]
    fn two_steps_are_tried_one_by_one() {
        assert_eq!(few_steps(2), [vec![0], vec![1]]);
    }
}
