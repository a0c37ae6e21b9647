//! Explains the state of an object.
//!
//! [`explain`] is pure: it takes an object, the Events about it and the operations on it, and returns
//! its health, the reasons, and what to do. For any kind it interprets conditions, finalizers and
//! generations; for the built-in kinds it knows more: why a pod does not run, why a Service has no
//! endpoints, what a claim waits for. Codes of the error catalogue lead to their remedies.

mod conditions;
mod decide;
mod kinds;
#[cfg(test)]
mod tests;
mod text;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use serde::Serialize;
use serde_json::Value;

pub use self::{decide::explain, kinds::Assessment};
use crate::{key::Key, operation::Operation, why::Catalogue};

/// What is known about an object.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The kind of the object.
    pub kind: String,
    /// The key of the object.
    pub key: Key,
    /// The object; none if it does not exist.
    pub object: Option<Value>,
    /// The assessment of the caller, for kinds that are not built in.
    pub assessment: Option<Assessment>,
    /// Objects that may be related, each with its kind: pods, ReplicaSets, EndpointSlices, storage
    /// classes. Unrelated ones are ignored.
    pub related: Arc<[Value]>,
    /// Kinds that the user may not read: `related` has none of them, whether they exist or not.
    pub unreadable: Vec<String>,
    /// Events about the object.
    pub events: Vec<Event>,
    /// Events about related objects; others are ignored.
    pub related_events: Arc<[Event]>,
    /// Operations; those on other objects are ignored.
    pub operations: Vec<Operation>,
    /// The catalogue whose codes lead to remedies.
    pub catalogue: Catalogue,
    /// The current time.
    pub now: Timestamp,
}

/// The health of an object, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Verdict {
    /// It is in its desired state.
    Healthy,
    /// It is being brought there.
    Progressing,
    /// It is not in its desired state.
    Degraded,
    /// It is being deleted.
    Terminating,
    /// There is no such object.
    #[serde(rename = "Missing")]
    NotFound,
}

impl Verdict {
    /// The worse of the two.
    pub fn or_worse(self, other: Self) -> Self {
        self.max(other)
    }
}

/// The explanation of an object's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The health of the object.
    pub verdict: Verdict,
    /// The health in a sentence.
    pub headline: String,
    /// The reasons, the most important first.
    pub why: Vec<String>,
    /// Warning Events about the object, the newest first.
    pub seen: Vec<String>,
    /// What to do.
    pub advice: Vec<String>,
    /// Kinds that would have told more if the user were allowed to read them.
    #[serde(rename = "hidden", skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

impl Facts {
    fn can_read(&self, kind: &str) -> bool {
        !self.unreadable.iter().any(|unreadable| unreadable == kind)
    }
}
