//! One rule of a role, and what it matches.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    AccessTarget,
    escalation::{AtomicRule, RuleTarget},
};

/// A policy rule: any of the verbs on any of the resources in any of the groups; or any of the
/// verbs on any of the paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// `*` is every verb.
    pub verbs: Vec<Box<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub api_groups: Vec<Box<str>>,
    /// `pods`, `pods/log`, `*/scale`, `*`.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub resources: Vec<Box<str>>,
    /// Empty means all objects.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub resource_names: Vec<Box<str>>,
    /// A `*` at the end matches every path with that prefix.
    #[serde(
        rename = "nonResourceURLs",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list"
    )]
    pub paths: Vec<Box<str>>,
}

/// A list that may be null.
fn list<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Box<str>>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// The rules of a role, or of a list of rules; an invalid rule grants nothing.
pub fn rules_of(value: &Value) -> Vec<PolicyRule> {
    let rules = value.as_array().into_iter().flatten();
    rules
        .filter_map(|rule| PolicyRule::deserialize(rule).ok())
        .collect()
}

impl PolicyRule {
    /// Whether the rule allows `verb` on `what`.
    pub fn matches(&self, verb: &str, what: &AccessTarget<'_>) -> bool {
        has(&self.verbs, verb)
            && match *what {
                AccessTarget::Path(path) => self.paths.iter().any(|known| leads_to(known, path)),
                AccessTarget::Resource {
                    group,
                    resource,
                    subresource,
                    name,
                    ..
                } => {
                    has(&self.api_groups, group)
                        && self.has_resource(resource, subresource)
                        && self.has_name(name)
                }
            }
    }

    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|known| match &**known {
            "*" => true,
            known if subresource.is_empty() => known == resource,
            known => known
                .split_once('/')
                .is_some_and(|(of, sub)| sub == subresource && (of == "*" || of == resource)),
        })
    }

    fn has_name(&self, name: &str) -> bool {
        self.resource_names.is_empty() || self.resource_names.iter().any(|known| **known == *name)
    }

    /// Whether this rule allows all of an atomic rule.
    pub(super) fn covers(&self, piece: AtomicRule<'_>) -> bool {
        has(&self.verbs, piece.verb)
            && match piece.place {
                RuleTarget::Path(path) => self.paths.iter().any(|known| leads_to(known, path)),
                RuleTarget::Resource {
                    group,
                    resource,
                    name,
                } => {
                    has(&self.api_groups, group)
                        && self.covers_resource(resource)
                        && (self.resource_names.is_empty()
                            || name.is_some_and(|name| self.has_name(name)))
                }
            }
    }

    fn covers_resource(&self, resource: &str) -> bool {
        let everywhere = resource.split_once('/').map(|(_, sub)| sub);
        self.resources.iter().any(|known| {
            **known == *"*"
                || **known == *resource
                || everywhere.is_some_and(|sub| known.strip_prefix("*/") == Some(sub))
        })
    }
}

fn has(words: &[Box<str>], word: &str) -> bool {
    words
        .iter()
        .any(|known| **known == *word || **known == *"*")
}

fn leads_to(known: &str, path: &str) -> bool {
    known == path
        || known
            .strip_suffix('*')
            .is_some_and(|start| path.starts_with(start))
}

/// As refusals show it: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`.
impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (name, words) in [
            ("NonResourceURLs", &self.paths),
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("ResourceNames", &self.resource_names),
        ] {
            if !words.is_empty() {
                write!(f, "{name}:{}, ", Quoted(words))?;
            }
        }
        write!(f, "Verbs:{}}}", Quoted(&self.verbs))
    }
}

/// Words as `["a" "b"]`.
pub(super) struct Quoted<'a, T>(pub(super) &'a [T]);

impl<T: AsRef<str>> fmt::Display for Quoted<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, word) in self.0.iter().enumerate() {
            let space = if i == 0 { "" } else { " " };
            write!(f, "{space}{:?}", word.as_ref())?;
        }
        f.write_str("]")
    }
}
