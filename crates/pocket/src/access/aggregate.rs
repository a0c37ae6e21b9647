//! Roles that take their rules from others.

use serde_json::Value;

use super::{Labelled, Rule};
use crate::selector::LabelSelector;

/// The rules of every role that one of the selectors selects, each rule once. Roles come in the
/// order of their names.
pub fn aggregated<'a>(
    selectors: &[Value],
    roles: &(impl Iterator<Item = Labelled<'a>> + Clone),
) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for selector in selectors {
        // One that cannot be read was refused when the role was written.
        let Ok(selector) = LabelSelector::from_object(Some(selector)) else {
            continue;
        };
        let selected = roles.clone().filter(|(labels, _)| selector.matches(labels));
        for rule in selected.flat_map(|(_, rules)| rules) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    rules
}

/// Whether two roles have the same rules. Their order does not count: two roles that gather from
/// each other would hand it back and forth without end.
pub fn are_same(rules: &[Rule], others: &[Rule]) -> bool {
    let within = |some: &[Rule], all: &[Rule]| some.iter().all(|rule| all.contains(rule));
    within(rules, others) && within(others, rules)
}
