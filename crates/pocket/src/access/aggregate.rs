//! Aggregated roles: cluster roles that take their rules from others.

use std::collections::HashSet;

use serde_json::Value;

use super::{LabelledRules, PolicyRule};
use crate::selector::LabelSelector;

/// The rules of every role that one of the selectors selects, each rule once. Roles come in the
/// order of their names.
pub fn aggregated<'a>(
    selectors: &[Value],
    roles: &(impl Iterator<Item = LabelledRules<'a>> + Clone),
) -> Vec<PolicyRule> {
    let mut rules: Vec<&PolicyRule> = Vec::new();
    let mut seen = HashSet::new();
    for selector in selectors {
        // An invalid selector was refused when the role was written.
        let Ok(selector) = LabelSelector::from_object(Some(selector)) else {
            continue;
        };
        let selected = roles.clone().filter(|(labels, _)| selector.matches(labels));
        let selected = selected.flat_map(|(_, rules)| rules);
        rules.extend(selected.filter(|rule| seen.insert(*rule)));
    }
    rules.into_iter().cloned().collect()
}

/// Whether two roles have the same rules, in any order: two roles that aggregate each other would
/// otherwise rewrite each other's order without end.
pub fn are_same(rules: &[PolicyRule], others: &[PolicyRule]) -> bool {
    let set = |rules: &'_ [PolicyRule]| rules.iter().cloned().collect::<HashSet<_>>();
    set(rules) == set(others)
}
