//! The check of an area, which looks at objects and returns findings.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::ResourceType;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing, but no failure.
    Note,
    /// Something has to be done.
    Failed,
}

/// The result of one check, with its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was checked, in a word: `resolvers`.
    pub name: String,
    /// The result.
    pub level: Level,
    /// The result in words. The name in the JSON output is older than the field.
    #[serde(rename = "says")]
    pub message: String,
    /// What to do; empty if nothing has to be done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

impl Finding {
    /// As it should be.
    pub fn ok(name: &str, message: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            level: Level::Ok,
            message: message.into(),
            hint: String::new(),
        }
    }

    /// Worth knowing.
    pub fn note(name: &str, message: impl Into<String>, hint: &str) -> Self {
        Self {
            level: Level::Note,
            hint: hint.to_owned(),
            ..Self::ok(name, message)
        }
    }

    /// A failure, and what to do.
    pub fn failed(name: &str, message: impl Into<String>, hint: &str) -> Self {
        Self {
            level: Level::Failed,
            ..Self::note(name, message, hint)
        }
    }
}

/// What `neap check AREA` looks at.
#[derive(Debug, Clone, Copy)]
pub struct AreaCheck {
    /// The kinds whose objects it needs, of all namespaces.
    pub reads: &'static [ResourceType],
    /// Judges them.
    pub judge: fn(&CheckFacts) -> Vec<Finding>,
}

/// What a check was given to judge.
#[derive(Debug, Clone)]
pub struct CheckFacts {
    /// The objects of the kinds that the check reads, each with its `kind`.
    pub objects: Vec<Value>,
    /// Those of the kinds that the server does not serve.
    pub unserved: Vec<&'static str>,
    /// The current time.
    pub now: Timestamp,
}

impl CheckFacts {
    /// The objects of a kind.
    pub fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |one| one["kind"] == kind)
    }

    /// The objects of a kind that have its type; the others are left out.
    pub fn typed<T: serde::de::DeserializeOwned>(&self, kind: &str) -> Vec<T> {
        let objects = self.objects.iter().filter(|one| one["kind"] == kind);
        objects.filter_map(|one| T::deserialize(one).ok()).collect()
    }

    /// Whether the server serves the kind.
    pub fn serves(&self, kind: &str) -> bool {
        !self.unserved.contains(&kind)
    }
}
