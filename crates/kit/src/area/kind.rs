//! The kinds of an area: how the program reads, sums up and judges their objects.

use jiff::Timestamp;
use serde_json::Value;

use crate::explain::Assessment;

/// A kind that is read without its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceType {
    /// The kind: `ElastiService`.
    pub name: &'static str,
    /// Group and version: `elasti.truefoundry.com/v1alpha1`, or `v1` for the core group.
    pub api_version: &'static str,
    /// The name in paths: `elastiservices`.
    pub plural: &'static str,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

impl ResourceType {
    /// A kind whose objects are in namespaces.
    pub const fn namespaced(
        name: &'static str,
        api_version: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            name,
            api_version,
            plural,
            namespaced: true,
        }
    }

    /// A kind whose objects are in no namespace.
    pub const fn cluster_scoped(
        name: &'static str,
        api_version: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            namespaced: false,
            ..Self::namespaced(name, api_version, plural)
        }
    }

    /// The group; empty for the core group.
    pub fn group(&self) -> &'static str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }
}

/// A kind that users ask about with `neap explain` and `neap status`.
#[derive(Debug, Clone, Copy)]
pub struct AreaKind {
    /// How the kind is called and where its objects are.
    pub resource: ResourceType,
    /// The heading of its section in `neap status`: `Services that can sleep`.
    pub title: &'static str,
    /// The key of the section in the JSON of `neap status`: `elastiServices`.
    pub key: &'static str,
    /// The state of an object in a few words: `asleep for 3m`.
    pub summary: fn(&Value, Timestamp) -> String,
    /// The health of an object, its reasons, and advice; none if the conditions alone say it.
    pub assess: fn(&Value, Timestamp) -> Option<Assessment>,
    /// Further kinds that an explanation of an object should see: their Events and objects of its namespace
    /// are read with it.
    pub related: &'static [ResourceType],
}
