//! The table of built-in kinds with their rules, and of those stored as another kind.

use serde_json::Value;

use super::{
    BuiltinKind, DEFINITION_RULES, Rules, core_kinds, event, horizontal_pod_autoscaler, reviews,
    workloads,
};

/// The rules of a built-in kind, by its stored group and version.
pub fn rules(group: &str, version: &str, plural: &str) -> Option<Rules> {
    if (group, plural) == ("apiextensions.k8s.io", "customresourcedefinitions") {
        return Some(DEFINITION_RULES);
    }
    let (group, version) = alias(group, version, plural)
        .map_or((group, version), |alias| (alias.group, alias.version));
    let is = |kind: &&BuiltinKind| {
        kind.group == group && kind.version == version && kind.plural == plural
    };
    let found = core_kinds()
        .iter()
        .find(is)
        .or_else(|| workloads::workload_kinds().iter().find(is))
        .or_else(|| reviews::review_kinds().iter().find(is));
    found.map(|kind| kind.rules)
}

/// A kind that is stored as another.
#[derive(Debug, Clone, Copy)]
pub struct Alias {
    /// The stored group.
    pub group: &'static str,
    /// The stored version.
    pub version: &'static str,
    /// Converts the stored form to this one.
    pub show: fn(Value) -> Value,
    /// Converts this form to the stored one.
    pub store: fn(Value) -> Value,
    /// Rules for this form, before it is converted to the stored one.
    pub rules: Rules,
}

/// The stored group and version of a kind, if they are not its own.
pub fn alias(group: &str, version: &str, plural: &str) -> Option<Alias> {
    match (group, version, plural) {
        ("events.k8s.io", "v1", "events") => Some(Alias {
            group: "",
            version: "v1",
            show: event::convert::to_events,
            store: event::convert::to_core,
            rules: event::RULES,
        }),
        ("autoscaling", "v1", "horizontalpodautoscalers") => Some(Alias {
            group: "autoscaling",
            version: "v2",
            show: horizontal_pod_autoscaler::convert::to_v1,
            store: horizontal_pod_autoscaler::convert::to_v2,
            rules: Rules::SHAPE_ONLY,
        }),
        _ => None,
    }
}
