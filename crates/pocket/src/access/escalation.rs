//! Nobody gives away what they do not have: which of the wanted rules somebody does not hold.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};

use super::{Rule, Who, decision::Held, rule::Quoted};

/// The most pieces that are compared one by one. A rule multiplies its lists: one of a few thousand
/// words can have billions.
const MOST_PIECES: usize = 100_000;
/// The longest that a list of all pieces may become, in bytes.
const LONGEST_LIST: usize = 8 << 20;

/// The smallest part of a rule: one verb in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Piece<'a> {
    pub(super) verb: &'a str,
    pub(super) place: Place<'a>,
}

/// What a piece is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place<'a> {
    Resource {
        group: &'a str,
        resource: &'a str,
        /// All objects, if none is named.
        name: Option<&'a str>,
    },
    Path(&'a str),
}

/// What of `wanted` is not `held`, in small pieces: one group, one resource, one name, and the
/// verbs of each. Pieces about paths are shown one by one.
pub fn uncovered(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let mut missing: Vec<Rule> = Vec::new();
    let mut seen = HashSet::new();
    let mut places = HashMap::new();
    for piece in wanted.iter().flat_map(pieces) {
        if !seen.insert(piece) || held.iter().any(|rule| rule.covers(piece)) {
            continue;
        }
        match places.get(&piece.place) {
            Some(&at) if matches!(piece.place, Place::Resource { .. }) => {
                let rule: &mut Rule = &mut missing[at];
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

/// Whether rules have more pieces, or longer ones, than can be compared one by one.
pub fn are_vast(rules: &[Rule]) -> bool {
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
    pieces > MOST_PIECES || list > LONGEST_LIST
}

fn product<const N: usize>(factors: [usize; N]) -> usize {
    factors.into_iter().fold(1, usize::saturating_mul)
}

/// The rules of somebody who may do everything.
pub fn full_authority() -> [Rule; 2] {
    let all = || vec!["*".into()];
    [
        Rule {
            verbs: all(),
            api_groups: all(),
            resources: all(),
            ..Rule::default()
        },
        Rule {
            verbs: all(),
            paths: all(),
            ..Rule::default()
        },
    ]
}

/// A rule as pieces, made as they are asked for.
fn pieces(rule: &Rule) -> impl Iterator<Item = Piece<'_>> {
    let names = || {
        let all = rule.resource_names.is_empty().then_some(None);
        let named = rule.resource_names.iter().map(|name| Some(&**name));
        all.into_iter().chain(named)
    };
    let of_group = move |group| {
        rule.resources.iter().flat_map(move |resource| {
            names().map(move |name| Place::Resource {
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
    let paths = rule.paths.iter().map(|path| Place::Path(path));
    objects.chain(paths).flat_map(|place| {
        let verbs = rule.verbs.iter();
        verbs.map(move |verb| Piece { verb, place })
    })
}

impl Piece<'_> {
    /// The rule that allows this and nothing else.
    fn rule(self) -> Rule {
        let mut rule = Rule {
            verbs: vec![self.verb.into()],
            ..Rule::default()
        };
        match self.place {
            Place::Resource {
                group,
                resource,
                name,
            } => {
                rule.api_groups.push(group.into());
                rule.resources.push(resource.into());
                rule.resource_names.extend(name.map(Into::into));
            }
            Place::Path(path) => rule.paths.push(path.into()),
        }
        rule
    }
}

impl Held {
    /// Why `who`, who holds this, may not give `wanted` away; `None` if they may.
    pub fn escalation(&self, who: Who<'_>, wanted: &[Rule]) -> Option<String> {
        let missing = uncovered(&self.rules, wanted);
        if missing.is_empty() {
            return None;
        }
        let mut lines: Vec<String> = missing.iter().map(Rule::to_string).collect();
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

    fn rule(verbs: usize, groups: usize, resources: usize, names: usize) -> Rule {
        let words = |count: usize| (0..count).map(|i| format!("w{i}").into()).collect();
        Rule {
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
            assert_eq!(are_vast(std::slice::from_ref(&rule)), vast);
        }
        let halves = [rule(10, 10, 10, 60), rule(10, 10, 10, 60)];
        assert!(are_vast(&halves));
    }

    #[test]
    fn long_words_make_a_rule_vast_too() {
        let mut long = rule(1, 1, 10, 10);
        assert!(!are_vast(std::slice::from_ref(&long)));
        long.api_groups[0] = "g".repeat(1 << 20).into();
        assert!(are_vast(&[long]));
    }

    #[test]
    fn what_is_wanted_twice_is_missing_once() {
        let wanted = [rule(2, 1, 1, 1), rule(3, 1, 1, 1)];
        assert_eq!(uncovered(&[], &wanted), [rule(3, 1, 1, 1)]);
        assert_eq!(uncovered(&wanted, &wanted), []);
        let paths = Rule {
            verbs: vec!["get".into(), "put".into(), "get".into()],
            paths: vec!["/a".into()],
            ..Rule::default()
        };
        assert_eq!(uncovered(&[], &[paths]).len(), 2);
    }
}
