//! Nobody gives away what they do not have: which of the wanted rules somebody does not hold.

use std::fmt::Write as _;

use super::{Rule, Who, decision::Held, rule::Quoted};

/// What of `wanted` is not `held`, in small pieces: one group, one resource, one name, and the
/// verbs of each.
pub fn uncovered(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let mut missing: Vec<Rule> = Vec::new();
    for piece in wanted.iter().flat_map(pieces) {
        if held.iter().any(|rule| rule.covers(&piece)) {
            continue;
        }
        let known = missing.iter_mut().find(|rule| is_same_place(rule, &piece));
        match known {
            Some(rule) if rule.verbs.contains(&piece.verbs[0]) => {}
            Some(rule) => rule.verbs.extend(piece.verbs),
            None => missing.push(piece),
        }
    }
    missing
}

/// Whether two pieces differ in their verbs alone. Those about paths are shown one by one.
fn is_same_place(one: &Rule, other: &Rule) -> bool {
    let verbs = one.paths.is_empty() || one.verbs == other.verbs;
    verbs
        && one.paths == other.paths
        && one.api_groups == other.api_groups
        && one.resources == other.resources
        && one.resource_names == other.resource_names
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

/// A rule as rules of one verb, one group, one resource and one name each, or of one verb and one
/// path.
fn pieces(rule: &Rule) -> Vec<Rule> {
    let names: Vec<Option<&Box<str>>> = match rule.resource_names.as_slice() {
        [] => vec![None],
        names => names.iter().map(Some).collect(),
    };
    let mut pieces = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for name in &names {
                pieces.extend(rule.verbs.iter().map(|verb| Rule {
                    verbs: vec![verb.clone()],
                    api_groups: vec![group.clone()],
                    resources: vec![resource.clone()],
                    resource_names: name.iter().map(|name| (*name).clone()).collect(),
                    paths: Vec::new(),
                }));
            }
        }
    }
    for path in &rule.paths {
        pieces.extend(rule.verbs.iter().map(|verb| Rule {
            verbs: vec![verb.clone()],
            paths: vec![path.clone()],
            ..Rule::default()
        }));
    }
    pieces
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
