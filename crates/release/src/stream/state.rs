//! What a stream does and why it does nothing, as its source says in an annotation.

use serde::{Deserialize, Serialize};

/// What a stream does, or what it waits for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamState {
    /// One CamelCase word.
    pub reason: String,
    /// The same for people.
    pub message: String,
    /// The newest release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
    /// The newest accepted release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_accepted: Option<String>,
    /// What keeps single releases from going on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

impl StreamState {
    /// A stream for this reason.
    pub fn new(reason: &str, message: impl Into<String>) -> Self {
        Self {
            reason: reason.to_owned(),
            message: message.into(),
            ..Self::default()
        }
    }
}
