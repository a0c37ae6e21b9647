//! Aggregated roles: cluster roles that take their rules from others.

use serde_json::Value;

use super::{LabelledRules, PolicyRule};
use crate::selector::LabelSelector;

/// The rules of every role that one of the selectors selects, each rule once. Roles come in the
/// order of their names.
pub fn aggregated<'a>(
    selectors: &[Value],
    roles: &(impl Iterator<Item = LabelledRules<'a>> + Clone),
) -> Vec<PolicyRule> {
    let mut rules: Vec<PolicyRule> = Vec::new();
    for selector in selectors {
        // An invalid selector was refused when the role was written.
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

/// Whether two roles have the same rules, in any order: two roles that aggregate each other would
/// otherwise rewrite each other's order without end.
pub fn are_same(rules: &[PolicyRule], others: &[PolicyRule]) -> bool {
    let within =
        |some: &[PolicyRule], all: &[PolicyRule]| some.iter().all(|rule| all.contains(rule));
    within(rules, others) && within(others, rules)
}
