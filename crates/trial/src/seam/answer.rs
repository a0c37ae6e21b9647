//! What a server says when it does not do what it was asked.

use bytes::Bytes;
use http::{Response, header::RETRY_AFTER};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::{Answer, Call};
use crate::plan::{Fault, Verb};

pub(super) fn refusal(fault: &Fault, call: &Call) -> Answer {
    let mut response = status(fault.code, reason(fault.code, call));
    if let Some(time) = fault.retry_after {
        response
            .headers_mut()
            .insert(RETRY_AFTER, time.as_secs().into());
    }
    response
}

/// Somebody else has changed the object.
pub(super) fn conflict() -> Answer {
    status(409, "Conflict")
}

/// What is asked for is no longer known.
pub(super) fn gone() -> Answer {
    status(410, "Expired")
}

fn reason(code: u16, call: &Call) -> &'static str {
    match code {
        403 => "Forbidden",
        404 => "NotFound",
        409 if call.verb == Verb::Create => "AlreadyExists",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    }
}

fn status(code: u16, reason: &str) -> Answer {
    let body = Bytes::from(body(code, reason).to_string());
    let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    let json = http::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, json);
    response
}

pub(super) fn body(code: u16, reason: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("the plan says {code}"), "reason": reason, "code": code,
    })
}
