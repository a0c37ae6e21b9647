//! Errors as ARM clients expect them: status, code, message, target, details.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
        json!({ "error": self })
    }
}

/// The error that customers are told about a failure, if the step said one. Cheap to clone.
///
/// It is stored with the timeline of the step that failed, so that another worker which ends the operation tells the
/// same. It is not sealed: customers read it as it is.
#[derive(Debug, Clone, Default)]
pub struct CustomerError(Arc<Mutex<Option<CloudError>>>);

impl CustomerError {
    /// Customers are told this.
    pub fn set(&self, error: CloudError) {
        *self.0.lock() = Some(error);
    }

    /// What customers are told.
    pub fn get(&self) -> Option<CloudError> {
        self.0.lock().clone()
    }

    /// As it is stored; null if there is none.
    pub(crate) fn stored(&self) -> Value {
        self.get().map_or(
            Value::Null,
            |error| json!({"status": error.status, "error": error}),
        )
    }

    /// Reads what was stored. What a step of this worker said is newer.
    pub(crate) fn read(&self, member: &Value) {
        let status = member["status"].as_u64();
        let status = status.and_then(|status| u16::try_from(status).ok());
        let status = status.filter(|status| (400..600).contains(status));
        let found = serde_json::from_value::<CloudError>(member["error"].clone()).ok();
        let found = found.map(|error| CloudError {
            status: status.unwrap_or(500),
            ..error
        });
        let mut told = self.0.lock();
        *told = told.take().or(found);
    }
}
