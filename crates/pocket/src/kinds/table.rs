//! The rows: every built-in kind with its rules, and those that share another kind's storage.

use serde_json::Value;

use super::{
    DEFINITION_RULES, Kind, Rules, core_kinds, event, horizontal_pod_autoscaler, reviews, workloads,
};

/// The rules of a built-in kind, by how it is stored.
pub fn rules(group: &str, version: &str, plural: &str) -> Option<Rules> {
    if (group, plural) == ("apiextensions.k8s.io", "customresourcedefinitions") {
        return Some(DEFINITION_RULES);
    }
    let (group, version) = alias(group, version, plural)
        .map_or((group, version), |alias| (alias.group, alias.version));
    let is = |kind: &&Kind| kind.group == group && kind.version == version && kind.plural == plural;
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
    /// The group it is stored as.
    pub group: &'static str,
    /// The version it is stored as.
    pub version: &'static str,
    /// From the stored form to this one.
    pub show: fn(Value) -> Value,
    /// From this form to the stored one.
    pub store: fn(Value) -> Value,
    /// Rules on this form, before it is turned into the stored one.
    pub rules: Rules,
}

/// Under what a kind is stored, if not under its own name.
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
