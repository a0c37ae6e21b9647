//! Errors as ARM clients expect them: status, code, message, target, details.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An error of the resource provider. Every one has a code and says what to do; there is no bare
/// "internal server error".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{status}: {code}: {target}: {message}")]
pub struct CloudError {
    /// The HTTP status.
    #[serde(skip, default = "internal")]
    pub status: u16,
    /// What went wrong, for programs.
    pub code: String,
    /// What went wrong, for people.
    pub message: String,
    /// The field or object that it concerns.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Particulars.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Self>,
}

fn internal() -> u16 {
    500
}

impl CloudError {
    /// An error with this HTTP status.
    pub fn new(status: u16, code: &str, target: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            message: message.into(),
            target: target.to_owned(),
            details: Vec::new(),
        }
    }

    /// 400 with this code.
    pub fn bad_request(code: &str, target: &str, message: impl Into<String>) -> Self {
        Self::new(400, code, target, message)
    }

    /// 400 InvalidParameter.
    pub fn invalid(target: &str, message: impl Into<String>) -> Self {
        Self::bad_request("InvalidParameter", target, message)
    }

    /// An error of this program or of what it depends on. `correlation` leads to it in the log.
    pub fn internal(what: &str) -> Self {
        let message = format!(
            "{what} The request may be sent again; if the error persists, contact support with the x-ms-request-id of this answer."
        );
        Self::new(500, "InternalServerError", "", message)
    }

    /// The same error with a detail.
    pub fn with_detail(mut self, code: &str, target: &str, message: impl Into<String>) -> Self {
        let status = self.status;
        self.details.push(Self::new(status, code, target, message));
        self
    }

    /// The body of an answer.
    pub fn envelope(&self) -> Value {
        serde_json::json!({ "error": self })
    }
}
