//! The facts about built-in resources: names, verbs, subresources.

use std::{collections::HashMap, sync::LazyLock};

use serde::Deserialize;

use super::ApiResource;

/// A built-in resource with its group and version.
#[derive(Debug, Clone, Deserialize)]
pub struct Builtin {
    /// API group, empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// The resource.
    #[serde(flatten)]
    pub resource: ApiResource,
}

// The file is generated and committed, and a test parses it: an unreadable one is empty here.
static ALL: LazyLock<Vec<Builtin>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../data/discovery.json")).unwrap_or_default()
});

static INDEX: LazyLock<HashMap<[&'static str; 3], usize>> = LazyLock::new(|| {
    let key = |b: &'static Builtin| [&*b.group, &*b.version, &*b.resource.plural];
    let keys = ALL.iter().map(key);
    keys.enumerate().map(|(index, key)| (key, index)).collect()
});

/// Every built-in resource, in the order a Kubernetes server publishes them.
pub fn builtins() -> &'static [Builtin] {
    &ALL
}

/// One built-in resource.
pub fn builtin(group: &str, version: &str, plural: &str) -> Option<&'static Builtin> {
    INDEX.get(&[group, version, plural]).map(|&at| &ALL[at])
}
