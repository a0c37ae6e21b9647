//! Responses of a server that refuses a request.

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::{Call, ServerResponse};
use crate::plan::{Fault, Verb};

pub(super) fn refusal(fault: &Fault, call: &Call) -> ServerResponse {
    let mut response = status(fault.code, reason(fault.code, call));
    if let Some(time) = fault.retry_after {
        response
            .headers_mut()
            .insert(RETRY_AFTER, time.as_secs().into());
    }
    response
}

/// The object has changed since it was read.
pub(super) fn conflict() -> ServerResponse {
    status(409, "Conflict")
}

/// The version that a watch would resume from has expired: reported in the stream, as servers do.
pub(super) fn gone() -> ServerResponse {
    let event = json!({"type": "ERROR", "object": body(410, "Expired")});
    json_answer(200, format!("{event}\n"))
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

fn status(code: u16, reason: &str) -> ServerResponse {
    json_answer(code, body(code, reason).to_string())
}

fn json_answer(code: u16, text: String) -> ServerResponse {
    let body = Full::new(Bytes::from(text));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

fn body(code: u16, reason: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("the plan says {code}"), "reason": reason, "code": code,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(
        clippy::disallowed_methods,
        reason = "the bodies of this module are short"
    )]
    #[tokio::test]
    async fn a_watch_is_told_within_its_stream_that_its_place_is_gone() {
        let (parts, stream) = gone().into_parts();
        assert_eq!(parts.status, 200);
        let line = stream.collect().await.unwrap().to_bytes();
        assert!(line.ends_with(b"\n"));
        let event: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(
            (&event["type"], &event["object"]["code"]),
            (&json!("ERROR"), &json!(410))
        );
    }
}
