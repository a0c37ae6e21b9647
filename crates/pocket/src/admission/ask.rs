//! What a write is, as far as the choice of webhooks goes.

use serde_json::Value;

/// What a request does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change, of any sort.
    Update,
    /// A delete.
    Delete,
    /// A connection through a subresource.
    Connect,
}

impl Operation {
    /// The word in rules and reviews.
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
pub struct Place<'a> {
    /// API group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Plural name.
    pub plural: &'a str,
}

/// A write, as rules and selectors see it.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// What is done.
    pub operation: Operation,
    /// The name that was asked for, and then the other names of the same objects.
    pub places: &'a [Place<'a>],
    /// The subresource, or nothing.
    pub subresource: &'a str,
    /// Whether the objects live in namespaces.
    pub namespaced: bool,
    /// The labels of the namespace, or of the object if it is one; `None` for other objects that
    /// live in no namespace.
    pub namespace_labels: Option<&'a Value>,
    /// The new state, if there is one.
    pub object: Option<&'a Value>,
    /// The state before, if there was one.
    pub old: Option<&'a Value>,
}
