//! Responses that are no `Status`, and the forms of refusals.

use std::any::Any;

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};

use super::{Body, warnings};
use crate::{rest::reply, status::ApiError};

/// 404 with an empty body.
pub(super) fn nothing() -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::new()));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

pub(super) fn no_page() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// The message of a panic.
pub(super) fn cause(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

pub(super) fn defect(id: &str) -> ApiError {
    ApiError::internal(format!(
        "the server panicked while it handled the request; its log has the cause under audit id {id}"
    ))
}

pub(super) fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

pub(super) fn refusal(error: &ApiError, yaml: bool) -> Response<Body> {
    let status = error.to_value();
    let (kind, body) = match reply::yaml(&status) {
        Ok(text) if yaml => (reply::YAML, text),
        _ => (reply::JSON, status.to_string()),
    };
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = error.code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    warnings::insert(&error.warnings, headers);
    if let Some(seconds) = error.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
