//! Answers: JSON with four spaces and a newline at the end, as clients of ARM get it.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use neap_kit::why::chain;
use neap_store::Error;
use serde_json::{Serializer, Value, ser::PrettyFormatter};

use crate::cloud_error::CloudError;

/// When a client may send a request again that was refused, in seconds.
const RETRY_AFTER: &str = "5";
/// When a client may first ask for an operation that was accepted, in seconds.
pub(crate) const FIRST_POLL: &str = "1";

/// When a client may ask again for an operation that runs since `started`, in seconds: often while it may be a
/// short one, seldom once it has turned out to be a long one. Pure.
pub(crate) fn poll_after(started: &str, now: Timestamp) -> &'static str {
    let started = started.parse::<Timestamp>();
    let elapsed = started.map_or(i64::MAX, |it| now.duration_since(it).as_secs());
    match elapsed {
        ..15 => FIRST_POLL,
        15..300 => "5",
        _ => "15",
    }
}

/// An error as an answer.
#[derive(Debug)]
pub struct Failure(pub CloudError);

impl From<CloudError> for Failure {
    fn from(error: CloudError) -> Self {
        Self(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(store_error(&error))
    }
}

/// What a client is told about an error of the store. The particulars are in the log.
pub(crate) fn store_error(error: &Error) -> CloudError {
    let why = chain(error);
    match error {
        Error::Conflict(_) | Error::Exists(_) | Error::Missing(_) => CloudError::new(
            409,
            "ConcurrentChange",
            "",
            "The resource was changed by another request at the same time: read it again, and send the request again if it still applies.",
        ),
        Error::Unavailable(_) | Error::OutcomeUnknown(_) => {
            tracing::error!(why, "the database cannot be used");
            CloudError::new(
                503,
                "DatabaseUnavailable",
                "",
                "The database of the provider cannot be used at this moment. Read the resource to see whether the request took effect, and send it again if it did not.",
            )
        }
        Error::Full(_) => {
            tracing::error!(why, "the disk of the database is full");
            CloudError::new(
                503,
                "DatabaseFull",
                "",
                "The database of the provider has no room. Nothing was changed: send the request again later.",
            )
        }
        _ => {
            tracing::error!(why, "the store refused a call");
            CloudError::internal("The provider could not store the request.")
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json(status, &self.0.envelope());
        let is_temporary = matches!(self.0.status, 409 | 429 | 503);
        let is_busy = !self.0.details.is_empty() && self.0.code == "RequestNotAllowed";
        if is_temporary || is_busy {
            let value = HeaderValue::from_static(RETRY_AFTER);
            response.headers_mut().insert(header::RETRY_AFTER, value);
        }
        response
    }
}

/// The text of a value.
pub(crate) fn pretty(value: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    let formatter = PrettyFormatter::with_indent(b"    ");
    let mut serializer = Serializer::with_formatter(&mut text, formatter);
    // Writing a value into memory does not fail.
    let _ = serde::Serialize::serialize(value, &mut serializer);
    text
}

/// An answer with a body.
pub(crate) fn json(status: StatusCode, value: &Value) -> Response {
    let mut body = pretty(value);
    body.push(b'\n');
    let mut response = (status, body).into_response();
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Sets a header, unless its value cannot be one.
pub(crate) fn set_header(response: &mut Response, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// 200 with a body.
pub(crate) fn ok(value: &Value) -> Response {
    json(StatusCode::OK, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_operation_is_asked_for_less_often() {
        let now = |text: &str| text.parse().unwrap();
        let started = "2026-01-01T00:00:00Z";
        assert_eq!(poll_after(started, now("2026-01-01T00:00:03Z")), "1");
        assert_eq!(poll_after(started, now("2026-01-01T00:01:00Z")), "5");
        assert_eq!(poll_after(started, now("2026-01-01T01:00:00Z")), "15");
        // A clock that is behind, and a document without a time.
        assert_eq!(poll_after(started, now("2025-12-31T23:59:00Z")), "1");
        assert_eq!(poll_after("", now("2026-01-01T00:00:03Z")), "15");
    }
}
