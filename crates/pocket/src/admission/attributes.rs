//! A write, as far as the choice of webhooks needs it.

use serde_json::Value;

/// What a request does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change of any sort.
    Update,
    /// A delete.
    Delete,
    /// A connection through a subresource.
    Connect,
}

impl Operation {
    /// The word in webhook rules and reviews.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// One of the names under which a resource is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupVersionResource<'a> {
    /// API group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Plural name.
    pub plural: &'a str,
}

/// A write, as rules and selectors see it.
#[derive(Debug, Clone, Copy)]
pub struct WriteAttributes<'a> {
    /// What is done.
    pub operation: Operation,
    /// The requested resource, followed by the other group versions of the same objects.
    pub places: &'a [GroupVersionResource<'a>],
    /// The subresource, or empty.
    pub subresource: &'a str,
    /// Whether the objects live in namespaces.
    pub namespaced: bool,
    /// The labels of the namespace, or of the object if it is a namespace; `None` for other
    /// cluster-scoped objects.
    pub namespace_labels: Option<&'a Value>,
    /// The new object, if there is one.
    pub object: Option<&'a Value>,
    /// The old object, if there was one.
    pub old: Option<&'a Value>,
}
