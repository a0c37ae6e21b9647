//! One rule of a webhook: which operations on which resources.

use serde_json::Value;

use crate::admission::{GroupVersionResource, WriteAttributes};

#[derive(Debug)]
pub(super) struct WebhookRule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource; an entry without a slash has no subresource.
    resources: Vec<(String, String)>,
    scope: RuleScope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuleScope {
    Any,
    Cluster,
    Namespaced,
}

impl WebhookRule {
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
                Some("Cluster") => RuleScope::Cluster,
                Some("Namespaced") => RuleScope::Namespaced,
                _ => RuleScope::Any,
            },
        }
    }

    /// Whether the rule matches a write of the resource under this name.
    pub(super) fn matches(
        &self,
        ask: &WriteAttributes<'_>,
        place: &GroupVersionResource<'_>,
    ) -> bool {
        let scoped = match self.scope {
            RuleScope::Any => true,
            RuleScope::Cluster => !ask.namespaced,
            RuleScope::Namespaced => ask.namespaced,
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
