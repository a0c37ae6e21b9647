//! One rule of a webhook: which operations on which resources.

use serde_json::Value;

use crate::admission::{Ask, Place};

#[derive(Debug)]
pub(super) struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource; an entry without a slash means no subresource.
    resources: Vec<(String, String)>,
    scope: Scope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Any,
    Cluster,
    Namespaced,
}

impl Rule {
    pub(super) fn read(rule: &Value) -> Self {
        let texts = |key: &str| -> Vec<String> {
            let list = rule[key].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(Into::into).collect()
        };
        let split = |entry: String| match entry.split_once('/') {
            Some((resource, below)) => (resource.to_owned(), below.to_owned()),
            None => (entry, String::new()),
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources").into_iter().map(split).collect(),
            scope: match rule["scope"].as_str() {
                Some("Cluster") => Scope::Cluster,
                Some("Namespaced") => Scope::Namespaced,
                _ => Scope::Any,
            },
        }
    }

    /// Whether a write of the resource under this name is meant.
    pub(super) fn matches(&self, ask: &Ask<'_>, place: &Place<'_>) -> bool {
        let scoped = match self.scope {
            Scope::Any => true,
            Scope::Cluster => !ask.namespaced,
            Scope::Namespaced => ask.namespaced,
        };
        scoped
            && has(&self.operations, ask.operation.word())
            && has(&self.groups, place.group)
            && has(&self.versions, place.version)
            && self
                .resources
                .iter()
                .any(|(resource, below)| is(resource, place.plural) && is(below, ask.subresource))
    }
}

fn is(wanted: &str, given: &str) -> bool {
    wanted == "*" || wanted == given
}

fn has(wanted: &[String], given: &str) -> bool {
    wanted.iter().any(|wanted| is(wanted, given))
}
