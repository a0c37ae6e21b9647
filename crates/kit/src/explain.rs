//! Why an object is as it is, in plain words.
//!
//! [`explain`] is pure: it takes what is known of an object (the object itself, the Events about it
//! and the operations on it) and says how it stands, why, and what to do. Of any kind it says what
//! conditions, finalizers and generations mean everywhere; of those that every cluster has it knows
//! more: why a pod does not run, who is missing behind a service, what a claim waits for. Codes of the
//! error catalogue lead to their remedies.

mod decide;
mod kinds;
mod said;
#[cfg(test)]
mod tests;
mod words;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use serde::Serialize;
use serde_json::Value;

pub use self::{decide::explain, kinds::Judgement};
use crate::{key::Key, operation::Operation};

/// What is known.
#[derive(Debug, Clone)]
pub struct Facts {
    /// What kind of object it is about.
    pub kind: String,
    /// Which one.
    pub key: Key,
    /// The object as the API has it; nothing if there is none.
    pub object: Option<Value>,
    /// What those say of it who know its kind, if it is none that every cluster has.
    pub known: Option<Judgement>,
    /// Objects around it, each with its kind: pods, sets, slices, classes. Those that have nothing
    /// to do with it are left out.
    pub around: Arc<[Value]>,
    /// Kinds that whoever asks may not read: that none of them is around says nothing.
    pub hidden: Vec<String>,
    /// Events about it.
    pub events: Vec<Event>,
    /// Events about objects around it; those about others are left out.
    pub nearby: Arc<[Event]>,
    /// Operations; those on other objects are left out.
    pub operations: Vec<Operation>,
    /// When one looks.
    pub now: Timestamp,
}

/// How an object stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Verdict {
    /// As it should.
    Well,
    /// It is being brought there.
    OnItsWay,
    /// It is not as it should be.
    Troubled,
    /// It is being deleted.
    Leaving,
    /// There is no such object.
    Missing,
}

impl Verdict {
    /// The one that is further from well.
    pub fn or_worse(self, other: Self) -> Self {
        self.max(other)
    }
}

/// What can be said of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// How it stands.
    pub verdict: Verdict,
    /// The same in a sentence.
    pub headline: String,
    /// Why, the most telling first.
    pub why: Vec<String>,
    /// What was said of it, the newest first.
    pub seen: Vec<String>,
    /// What to do.
    pub advice: Vec<String>,
    /// Kinds that would have said more, had they been allowed to be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
}

impl Facts {
    fn may_see(&self, kind: &str) -> bool {
        !self.hidden.iter().any(|hidden| hidden == kind)
    }
}
