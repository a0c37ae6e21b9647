//! Errors as the API reports them: the `Status` object, its reasons and its causes.
//!
//! Every module reports an error as an [`ApiError`], so that message, reason, code and details are
//! decided where the error arises and not where it is written to the wire.

mod field;
mod json;

pub use field::{FieldError, FieldErrorKind, MAX_PROBLEMS, Problems};
pub use json::unreadable_json;

use http::StatusCode;
use serde_json::{Map, Value, json};

/// One entry of `status.details.causes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable, such as `FieldValueRequired`.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The path of the field, if there is one.
    pub field: String,
}

/// The object of an error: `details.group`, `details.kind`, `details.name`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// API group, empty for the core group.
    pub group: String,
    /// Plural resource name; the kind's name in errors with reason `Invalid`.
    pub kind: String,
    /// Object name, empty for a collection.
    pub name: String,
}

/// An error, ready to be sent as a `Status`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status code.
    pub code: StatusCode,
    /// `status.reason`, such as `NotFound`.
    pub reason: &'static str,
    /// `status.message`.
    pub message: String,
    /// The object it is about, if there is one.
    pub subject: Option<Subject>,
    /// `details.uid`.
    pub uid: Option<String>,
    /// `details.causes`.
    pub causes: Vec<Cause>,
    /// `details.retryAfterSeconds`, also sent as `Retry-After`.
    pub retry_after: Option<u32>,
    /// `metadata.continue`: the 410 of an expired continue token offers a fresh one.
    pub continue_token: Option<String>,
    /// The whole `Status`, where another server wrote it: a webhook that refuses.
    pub verbatim: Option<Box<Value>>,
    /// Texts for `Warning` headers: warnings collected before the error.
    pub warnings: Vec<String>,
}

pub type Result<T, E = ApiError> = std::result::Result<T, E>;

impl ApiError {
    /// An error with this code, reason and message, and no subject.
    pub fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            subject: None,
            uid: None,
            causes: Vec::new(),
            retry_after: None,
            continue_token: None,
            verbatim: None,
            warnings: Vec::new(),
        }
    }

    /// 500 without a reason: a failure that the API has no reason for.
    pub fn failure(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// The same error with the warnings collected before it.
    #[must_use]
    pub fn warned(mut self, warnings: &[String]) -> Self {
        self.warnings.extend_from_slice(warnings);
        self
    }

    /// The same error, about `group`/`kind` `name`.
    #[must_use]
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.subject = Some(Subject {
            group: group.into(),
            kind: kind.into(),
            name: name.into(),
        });
        self
    }

    /// The same error with one more cause.
    #[must_use]
    pub fn caused_by(mut self, reason: &str, field: &str, message: impl Into<String>) -> Self {
        self.causes.push(Cause {
            reason: reason.into(),
            message: message.into(),
            field: field.into(),
        });
        self
    }

    /// 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 404: `configmaps "x" not found`.
    pub fn not_found(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", qualified(plural, group));
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(group, plural, name)
    }

    /// 409: `configmaps "x" already exists`.
    pub fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", qualified(plural, group));
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(group, plural, name)
    }

    /// 409: `Operation cannot be fulfilled on configmaps "x": <why>`.
    pub fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            qualified(plural, group)
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(group, plural, name)
    }

    /// 409 for a stale resourceVersion.
    pub fn stale(group: &str, plural: &str, name: &str) -> Self {
        const WHY: &str = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(group, plural, name, WHY)
    }

    /// 403: `configmaps "x" is forbidden: <why>`.
    pub fn forbidden(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let what = qualified(plural, group);
        let message = if name.is_empty() {
            format!("{what} is forbidden: {why}")
        } else {
            format!("{what} \"{name}\" is forbidden: {why}")
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(group, plural, name)
    }

    /// 422: `Deployment.apps "x" is invalid: <problems>`. Here `details.kind` is the kind.
    pub fn invalid(group: &str, kind: &str, name: &str, problems: &Problems) -> Self {
        let what = qualified(kind, group);
        let message = format!("{what} \"{name}\" is invalid: {problems}");
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
            .about(group, kind, name);
        error.causes = problems.iter().map(FieldError::cause).collect();
        error
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about("", "", "")
    }

    /// 410: the revision is no longer in the history.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 500: a defect or a broken disk; the message says which.
    pub fn internal(message: impl Into<String>) -> Self {
        let why = message.into();
        let message = format!("Internal error occurred: {why}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
            .caused_by("", "", why)
    }

    /// The `Status` object of this error.
    pub fn to_value(&self) -> Value {
        if let Some(status) = &self.verbatim {
            return (**status).clone();
        }
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".into(), json!(token));
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = self.details() {
            status["details"] = details;
        }
        status
    }

    fn details(&self) -> Option<Value> {
        if self.subject.is_none() && self.causes.is_empty() && self.retry_after.is_none() {
            return None;
        }
        let mut details = Map::new();
        if let Some(subject) = &self.subject {
            for (key, value) in [
                ("name", &subject.name),
                ("group", &subject.group),
                ("kind", &subject.kind),
            ] {
                if !value.is_empty() {
                    details.insert(key.into(), json!(value));
                }
            }
        }
        if let Some(uid) = &self.uid {
            details.insert("uid".into(), json!(uid));
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(cause_value).collect();
            details.insert("causes".into(), Value::Array(causes));
        }
        if let Some(seconds) = self.retry_after {
            details.insert("retryAfterSeconds".into(), json!(seconds));
        }
        Some(Value::Object(details))
    }
}

fn cause_value(cause: &Cause) -> Value {
    let mut value = json!({"message": cause.message});
    if !cause.reason.is_empty() {
        value["reason"] = json!(cause.reason);
    }
    if !cause.field.is_empty() {
        value["field"] = json!(cause.field);
    }
    value
}

/// `deployments.apps`, or `configmaps` for the core group.
pub fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.into()
    } else {
        format!("{name}.{group}")
    }
}
