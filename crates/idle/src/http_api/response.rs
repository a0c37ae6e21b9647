//! Requests, responses, and what all routes have in common.

use std::fmt;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use neap_kit::telemetry::ChunkedText;
use serde::{Serialize, de::DeserializeOwned};

use crate::auth::Denied;

/// A request with its whole body.
pub type ApiRequest = Request<Bytes>;
/// A response.
pub type ApiResponse = Response<ChunkedText>;

/// Responds to requests.
pub trait Handler: fmt::Debug + Send + Sync {
    /// The response to `request`.
    fn handle<'a>(&'a self, request: &'a ApiRequest) -> BoxFuture<'a, ApiResponse>;
}

/// A line of plain text. It ends with a line break, as responses of Go's `http.Error` do.
pub(crate) fn text(status: StatusCode, line: &str) -> ApiResponse {
    let mut response = Response::new(ChunkedText::from(format!("{line}\n")));
    *response.status_mut() = status;
    with_content_type(response, "text/plain; charset=utf-8")
}

pub(crate) fn json(value: &impl Serialize) -> ApiResponse {
    match serde_json::to_vec(value) {
        Ok(body) => {
            let response = Response::new(ChunkedText::from(body));
            with_content_type(response, "application/json")
        }
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

pub(crate) fn metrics(metrics: ChunkedText) -> ApiResponse {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    with_content_type(Response::new(metrics), content_type)
}

pub(crate) fn with_content_type(
    mut response: ApiResponse,
    content_type: &'static str,
) -> ApiResponse {
    let content_type = HeaderValue::from_static(content_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

pub(crate) fn denied(denied: &Denied) -> ApiResponse {
    let mut response = text(denied.status(), &denied.to_string());
    if denied.status() == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer");
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, scheme);
    }
    response
}

/// Rejects requests with another method than `allowed`. Where GET is allowed, HEAD is too.
pub(crate) fn require_method(allowed: &Method, request: &ApiRequest) -> Result<(), ApiResponse> {
    let head = allowed == Method::GET && request.method() == Method::HEAD;
    if request.method() == allowed || head {
        return Ok(());
    }
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed");
    if let Ok(allowed) = HeaderValue::from_str(allowed.as_str()) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    Err(response)
}

pub(crate) fn parse_body<T: DeserializeOwned>(request: &ApiRequest) -> Result<T, ApiResponse> {
    serde_json::from_slice(request.body()).map_err(|error| {
        let message = format!("the body is not the JSON that this path expects: {error}");
        text(StatusCode::BAD_REQUEST, &message)
    })
}
