//! Privilege escalation: which of the wanted rules the granting user does not hold. A user may only
//! grant permissions that they hold themselves.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};

use super::{PolicyRule, Requester, decision::HeldRules, rule::Quoted};

/// Atomic rules that are compared one by one, at most. A rule multiplies its lists: one of a few
/// thousand words can expand to billions.
const MAX_ATOMIC_RULES: usize = 100_000;
/// Bytes that the list of all atomic rules may take, at most.
const MAX_LIST_BYTES: usize = 8 << 20;

/// The smallest part of a rule: one verb on one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AtomicRule<'a> {
    pub(super) verb: &'a str,
    pub(super) place: RuleTarget<'a>,
}

/// The target of an atomic rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RuleTarget<'a> {
    Resource {
        group: &'a str,
        resource: &'a str,
        /// All objects, if none is named.
        name: Option<&'a str>,
    },
    Path(&'a str),
}

/// The part of `wanted` that `held` does not cover, as small rules: one group, one resource, one
/// name, and the verbs of each. Rules about paths are listed one by one.
pub fn uncovered(held: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    let mut missing: Vec<PolicyRule> = Vec::new();
    let mut seen = HashSet::new();
    let mut places = HashMap::new();
    for piece in wanted.iter().flat_map(pieces) {
        if !seen.insert(piece) || held.iter().any(|rule| rule.covers(piece)) {
            continue;
        }
        match places.get(&piece.place) {
            Some(&at) if matches!(piece.place, RuleTarget::Resource { .. }) => {
                let rule: &mut PolicyRule = &mut missing[at];
                rule.verbs.push(piece.verb.into());
            }
            _ => {
                places.insert(piece.place, missing.len());
                missing.push(piece.rule());
            }
        }
    }
    missing
}

/// Whether rules expand to more atomic rules, or longer ones, than can be compared one by one.
pub fn are_too_many(rules: &[PolicyRule]) -> bool {
    let text = |words: &[Box<str>]| words.iter().map(|word| word.len()).sum::<usize>();
    let sizes = rules.iter().map(|rule| {
        let verbs = rule.verbs.len();
        let (groups, resources) = (rule.api_groups.len(), rule.resources.len());
        let names = rule.resource_names.len().max(1);
        let objects = product([groups, resources, names]);
        let paths = product([rule.paths.len(), verbs]);
        let pieces = product([objects, verbs, 1]).saturating_add(paths);
        let list = [
            product([text(&rule.api_groups), resources, names]),
            product([groups, text(&rule.resources), names]),
            product([groups, resources, text(&rule.resource_names)]),
            product([objects.saturating_add(rule.paths.len()), text(&rule.verbs)]),
            product([text(&rule.paths), verbs]),
        ];
        (pieces, list.into_iter().fold(0, usize::saturating_add))
    });
    let (pieces, list) = sizes.fold((0_usize, 0_usize), |(pieces, list), (more, longer)| {
        (pieces.saturating_add(more), list.saturating_add(longer))
    });
    pieces > MAX_ATOMIC_RULES || list > MAX_LIST_BYTES
}

fn product<const N: usize>(factors: [usize; N]) -> usize {
    factors.into_iter().fold(1, usize::saturating_mul)
}

/// The rules of a user who may do everything.
pub fn full_authority() -> [PolicyRule; 2] {
    let all = || vec!["*".into()];
    [
        PolicyRule {
            verbs: all(),
            api_groups: all(),
            resources: all(),
            ..PolicyRule::default()
        },
        PolicyRule {
            verbs: all(),
            paths: all(),
            ..PolicyRule::default()
        },
    ]
}

/// Expands a rule lazily into atomic rules.
fn pieces(rule: &PolicyRule) -> impl Iterator<Item = AtomicRule<'_>> {
    let names = || {
        let all = rule.resource_names.is_empty().then_some(None);
        let named = rule.resource_names.iter().map(|name| Some(&**name));
        all.into_iter().chain(named)
    };
    let of_group = move |group| {
        rule.resources.iter().flat_map(move |resource| {
            names().map(move |name| RuleTarget::Resource {
                group,
                resource,
                name,
            })
        })
    };
    let objects = rule
        .api_groups
        .iter()
        .flat_map(move |group| of_group(group));
    let paths = rule.paths.iter().map(|path| RuleTarget::Path(path));
    objects.chain(paths).flat_map(|place| {
        let verbs = rule.verbs.iter();
        verbs.map(move |verb| AtomicRule { verb, place })
    })
}

impl AtomicRule<'_> {
    /// The rule that allows this and nothing else.
    fn rule(self) -> PolicyRule {
        let mut rule = PolicyRule {
            verbs: vec![self.verb.into()],
            ..PolicyRule::default()
        };
        match self.place {
            RuleTarget::Resource {
                group,
                resource,
                name,
            } => {
                rule.api_groups.push(group.into());
                rule.resources.push(resource.into());
                rule.resource_names.extend(name.map(Into::into));
            }
            RuleTarget::Path(path) => rule.paths.push(path.into()),
        }
        rule
    }
}

impl HeldRules {
    /// Why `who`, who holds these rules, may not grant `wanted`; `None` if they may.
    pub fn escalation(&self, who: Requester<'_>, wanted: &[PolicyRule]) -> Option<String> {
        let missing = uncovered(&self.rules, wanted);
        if missing.is_empty() {
            return None;
        }
        let mut lines: Vec<String> = missing.iter().map(PolicyRule::to_string).collect();
        lines.sort();
        let mut why = format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            who.name,
            Quoted(who.groups),
            lines.join("\n"),
        );
        let absent = self.missing.iter();
        let absent: Vec<String> = absent
            .map(|(kind, name)| format!("{kind}s.rbac.authorization.k8s.io \"{name}\" not found"))
            .collect();
        if !absent.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(why, "; resolution errors: [{}]", absent.join(" "));
        }
        Some(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(verbs: usize, groups: usize, resources: usize, names: usize) -> PolicyRule {
        let words = |count: usize| (0..count).map(|i| format!("w{i}").into()).collect();
        PolicyRule {
            verbs: words(verbs),
            api_groups: words(groups),
            resources: words(resources),
            resource_names: words(names),
            paths: Vec::new(),
        }
    }

    #[test]
    fn a_rule_is_vast_by_what_its_lists_multiply_to() {
        for (rule, vast) in [
            (rule(10, 10, 10, 100), false),
            (rule(10, 10, 10, 101), true),
            (rule(100, 100, 10, 0), false),
            (rule(100, 100, 11, 0), true),
            (rule(60_000, 60_000, 60_000, 60_000), true),
            (rule(60_000, 0, 60_000, 60_000), false),
        ] {
            assert_eq!(are_too_many(std::slice::from_ref(&rule)), vast);
        }
        let halves = [rule(10, 10, 10, 60), rule(10, 10, 10, 60)];
        assert!(are_too_many(&halves));
    }

    #[test]
    fn long_words_make_a_rule_vast_too() {
        let mut long = rule(1, 1, 10, 10);
        assert!(!are_too_many(std::slice::from_ref(&long)));
        long.api_groups[0] = "g".repeat(1 << 20).into();
        assert!(are_too_many(&[long]));
    }

    #[test]
    fn what_is_wanted_twice_is_missing_once() {
        let wanted = [rule(2, 1, 1, 1), rule(3, 1, 1, 1)];
        assert_eq!(uncovered(&[], &wanted), [rule(3, 1, 1, 1)]);
        assert_eq!(uncovered(&wanted, &wanted), []);
        let paths = PolicyRule {
            verbs: vec!["get".into(), "put".into(), "get".into()],
            paths: vec!["/a".into()],
            ..PolicyRule::default()
        };
        assert_eq!(uncovered(&[], &[paths]).len(), 2);
    }
}
