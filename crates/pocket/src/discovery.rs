//! Discovery: the documents that list what the server serves.
//!
//! The input is neutral: [`Group`]s with versions and resources, built-in and custom alike, put
//! together and in order by [`gather()`]. The facts about built-in resources come from
//! `data/discovery.json` ([`builtin()`]). Rendering is pure; every document carries an ETag that
//! follows its content.

mod builtin;
mod documents;
mod gather;
mod order;

use serde::Deserialize;

pub use builtin::{Builtin, builtin, builtins};
pub use documents::{Document, aggregated, api_versions, group, group_list, resource_list};
pub use gather::gather;
pub use order::{compare_versions, sort};

/// An API group, the core group having an empty name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Such as `apps`.
    pub name: String,
    /// Served versions, the preferred one first.
    pub versions: Vec<DiscoveryVersion>,
}

/// One version of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryVersion {
    /// Such as `v1`.
    pub name: String,
    pub resources: Vec<ApiResource>,
}

/// One resource.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiResource {
    /// Such as `deployments`.
    pub plural: String,
    /// Such as `deployment`.
    pub singular: String,
    /// Such as `Deployment`.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// In alphabetical order.
    pub verbs: Vec<String>,
    /// Such as `deploy`.
    #[serde(default)]
    pub short_names: Vec<String>,
    /// Such as `all`.
    #[serde(default)]
    pub categories: Vec<String>,
    /// Whether a custom resource definition defines it.
    #[serde(default)]
    pub custom: bool,
    #[serde(default)]
    pub subresources: Vec<Subresource>,
}

/// A subresource, such as `status`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Subresource {
    /// Such as `scale`.
    pub name: String,
    /// Group of the kind it serves.
    pub group: String,
    /// Version of the kind it serves.
    pub version: String,
    /// The kind it serves, such as `Scale`.
    pub kind: String,
    pub verbs: Vec<String>,
}

/// `v1`, or `apps/v1`.
pub fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.into()
    } else {
        format!("{group}/{version}")
    }
}

#[cfg(test)]
mod tests;
