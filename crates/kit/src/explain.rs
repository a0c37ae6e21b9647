//! Why an object is as it is, in plain words.
//!
//! [`explain`] is pure: it takes what is known of an object (the object itself, the Events about it
//! and the operations on it) and says how it stands, why, and what to do. It needs no knowledge of
//! the kind: conditions, finalizers and generations mean the same everywhere, and codes of the error
//! catalogue lead to their remedies.

mod decide;
mod said;
#[cfg(test)]
mod tests;
mod words;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

pub use self::decide::explain;
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
    /// Events about it.
    pub events: Vec<Event>,
    /// Operations; those on other objects are left out.
    pub operations: Vec<Operation>,
    /// When one looks.
    pub now: Timestamp,
}

/// How an object stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// What can be said of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
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
}
