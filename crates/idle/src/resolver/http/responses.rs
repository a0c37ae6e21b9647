//! Responses that the resolver makes itself.

use bytes::Bytes;
use http::{
    HeaderValue, Method, Response, StatusCode, Version,
    header::{self, HeaderName},
};
use http_body_util::Full;
use neap_kit::key::Key;
use percent_encoding::{AsciiSet, CONTROLS};
use serde_json::{Value, json};

use super::{probe_rules::CannedResponse, response_body::ResponseBody};
use crate::{
    api::Breakdown,
    resolver::{hold::HoldError, routes::RoutedService},
};

/// The header with the parts of a held request's time.
pub(super) const COLD_START: HeaderName = HeaderName::from_static("x-neaptide-cold-start");
/// The value of `Retry-After`.
const RETRY_AFTER_SECONDS: &str = "1";

/// Reasons of requests that were not answered by a pod, besides those of [`HoldError`].
pub(in crate::resolver) const UNKNOWN: &str = "UnknownService";
pub(super) const GONE: &str = "ServiceGone";
pub(super) const UNSUPPORTED: &str = "UnsupportedMethod";
pub(super) const BROKEN: &str = "PodBrokeOff";
pub(super) const BAD: &str = "BadRequest";
pub(super) const LEFT: &str = "ClientLeft";
/// The message of [`BAD`] and [`LEFT`].
pub(super) const UNREAD: &str = "the body of the request cannot be read";

/// The characters that are escaped in `grpc-message`.
const GRPC_MESSAGE_ESCAPES: &AsciiSet = &CONTROLS.add(b'%');

/// The error of a response, for its gRPC form.
#[derive(Clone)]
struct ErrorDetails {
    /// The message.
    error: String,
    /// The gRPC status code.
    code: &'static str,
}

/// gRPC status codes. Only the last may be retried: nothing was sent.
const GRPC_UNKNOWN: &str = "2";
const GRPC_DEADLINE_EXCEEDED: &str = "4";
const GRPC_UNIMPLEMENTED: &str = "12";
const GRPC_UNAVAILABLE: &str = "14";

const PAGE: &str = include_str!("waiting.html");

/// The response of a matching probe rule.
pub(super) fn canned(canned: &CannedResponse, method: &Method) -> Response<ResponseBody> {
    let html = canned.body.trim_start().starts_with('<');
    let kind = if html { "text/html" } else { "text/plain" };
    let kind = (!canned.body.is_empty()).then(|| format!("{kind}; charset=utf-8"));
    let body = match *method {
        Method::HEAD => String::new(),
        _ => canned.body.clone(),
    };
    let mut answer = text(canned.status, body);
    if let Some(kind) = kind.and_then(|kind| HeaderValue::try_from(kind).ok()) {
        answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    answer
}

/// 404: the host is not a sleeping service.
pub(super) fn unknown() -> Response<ResponseBody> {
    json(
        StatusCode::NOT_FOUND,
        &json!({
            "error": "no sleeping service has this host; hosts are <service>.<namespace>, \
                      with or without .svc and the domain",
            "reason": UNKNOWN,
        }),
    )
}

/// 503: the ElastiService of this port was removed.
pub(super) fn gone(version: Version) -> Response<ResponseBody> {
    let mut answer = unavailable(&json!({
        "error": "the service is no longer managed here; a new connection reaches its pods",
        "reason": GONE,
    }));
    // HTTP/2 connections are closed with GOAWAY instead.
    if version != Version::HTTP_2 {
        let close = HeaderValue::from_static("close");
        answer.headers_mut().insert(header::CONNECTION, close);
    }
    answer
}

/// 400: the client left in the middle of the body, or sent a malformed one.
pub(super) fn unread() -> Response<ResponseBody> {
    let body = json!({"error": UNREAD, "reason": BAD});
    json(StatusCode::BAD_REQUEST, &body)
}

/// 400: the request does not name its host, or not unambiguously.
pub(super) fn bad_host(why: &str) -> Response<ResponseBody> {
    json(
        StatusCode::BAD_REQUEST,
        &json!({"error": why, "reason": BAD}),
    )
}

/// Converts a response of the resolver into a gRPC status: gRPC clients cannot read JSON.
pub(super) fn in_grpc(answer: Response<ResponseBody>) -> Response<ResponseBody> {
    let (head, body) = answer.into_parts();
    let Some(ErrorDetails { error, code }) = head.extensions.get() else {
        return Response::from_parts(head, body);
    };
    let mut answer = text(StatusCode::OK, String::new());
    let headers = answer.headers_mut();
    let message = percent_encoding::utf8_percent_encode(error, GRPC_MESSAGE_ESCAPES).to_string();
    let grpc = [
        (header::CONTENT_TYPE, "application/grpc"),
        (HeaderName::from_static("grpc-status"), code),
        (HeaderName::from_static("grpc-message"), &message),
    ];
    for (name, value) in grpc {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    if let Some(cold) = head.headers.get(COLD_START) {
        headers.insert(COLD_START, cold.clone());
    }
    answer
}

/// 501: the resolver does not support the request.
pub(super) fn not_carried(what: &str) -> Response<ResponseBody> {
    json(
        StatusCode::NOT_IMPLEMENTED,
        &json!({"error": format!("{what} is not supported"), "reason": UNSUPPORTED}),
    )
}

/// 503 or 504: no pod accepted the request, and nothing was sent.
pub(super) fn refused(refused: &HoldError) -> Response<ResponseBody> {
    let error = match refused {
        HoldError::DeadlineExceeded {
            breakdown,
            not_ready,
            ..
        } => {
            let cause = not_ready.map_or(String::new(), |it| format!("; {}", it.for_clients()));
            format!("{refused}: {}{cause}", breakdown.longest_part())
        }
        _ => refused.to_string(),
    };
    error_response(refused, &error)
}

/// 504: a pod accepted the request and did not begin to answer in time.
pub(super) fn timed_out(late: &HoldError) -> Response<ResponseBody> {
    let error = match late {
        HoldError::DeadlineExceeded { breakdown, .. } => breakdown.longest_part(),
        _ => String::new(),
    };
    let error = format!("a pod did not begin to answer in time: {error}");
    let mut answer = error_response(late, &error);
    let code = GRPC_DEADLINE_EXCEEDED;
    answer.extensions_mut().insert(ErrorDetails { error, code });
    answer
}

/// The message to clients about a failed wake.
const WAKE_FAILED: &str = "the operator could not wake it; the resolver's log has the cause";

fn error_response(refused: &HoldError, error: &str) -> Response<ResponseBody> {
    let reason = refused.reason();
    match refused {
        HoldError::DeadlineExceeded {
            service,
            breakdown,
            wake_error,
            not_ready,
        } => {
            let mut body = json!({
                "error": error,
                "reason": reason,
                "service": service.to_string(),
                "milliseconds": breakdown,
            });
            if wake_error.is_some() {
                // The cause may contain accounts and addresses of the cluster, so clients do not get it.
                body["wakeFailed"] = WAKE_FAILED.into();
            }
            if let Some(cause) = not_ready {
                body["cause"] = json!({
                    "reason": cause.as_str(),
                    "message": cause.for_clients(),
                });
            }
            with_cold_start(json(StatusCode::GATEWAY_TIMEOUT, &body), breakdown)
        }
        HoldError::QueueFull(service) | HoldError::ServiceGone(service) => {
            let service = service.to_string();
            unavailable(&json!({"error": error, "reason": reason, "service": service}))
        }
        HoldError::ShuttingDown => unavailable(&json!({"error": error, "reason": reason})),
    }
}

/// 502: a pod accepted the request and closed the connection. The request may have been processed, so it is
/// not sent again.
pub(super) fn broken(service: &Key) -> Response<ResponseBody> {
    let body = json!({
        "error": "a pod accepted the request and closed the connection before it answered; \
                  the request may have been processed",
        "reason": BROKEN,
        "service": service.to_string(),
    });
    json(StatusCode::BAD_GATEWAY, &body)
}

/// The waiting page, which reloads by itself.
pub(super) fn page(service: &RoutedService) -> Response<ResponseBody> {
    let cause = service.not_ready.map_or(String::new(), |cause| {
        format!("<p>It does not answer yet: {}.</p>", cause.for_clients())
    });
    let page = PAGE.replace("{{service}}", service.key.name());
    let page = page.replace("{{cause}}", &cause);
    let mut answer = text(StatusCode::SERVICE_UNAVAILABLE, page);
    let headers = answer.headers_mut();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::RETRY_AFTER,
        HeaderValue::from_static(RETRY_AFTER_SECONDS),
    );
    answer
}

/// Adds the header with the parts of the time.
pub(super) fn with_cold_start<B>(mut answer: Response<B>, breakdown: &Breakdown) -> Response<B> {
    let parts = breakdown.parts();
    let parts = parts.map(|(part, took)| format!("{};dur={took}", part.replace('_', "-")));
    if let Ok(value) = HeaderValue::try_from(parts.join(", ")) {
        answer.headers_mut().insert(COLD_START, value);
    }
    answer
}

fn unavailable(body: &Value) -> Response<ResponseBody> {
    let mut answer = json(StatusCode::SERVICE_UNAVAILABLE, body);
    let again = HeaderValue::from_static(RETRY_AFTER_SECONDS);
    answer.headers_mut().insert(header::RETRY_AFTER, again);
    answer
}

fn json(status: StatusCode, body: &Value) -> Response<ResponseBody> {
    let mut answer = text(status, format!("{body}\n"));
    let error = body["error"].as_str().unwrap_or_default().to_owned();
    let code = match status {
        StatusCode::BAD_GATEWAY => GRPC_UNKNOWN,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => GRPC_UNAVAILABLE,
        _ => GRPC_UNIMPLEMENTED,
    };
    answer.extensions_mut().insert(ErrorDetails { error, code });
    let kind = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

fn text(status: StatusCode, body: String) -> Response<ResponseBody> {
    let mut answer = Response::new(ResponseBody::Local(Full::new(Bytes::from(body))));
    *answer.status_mut() = status;
    answer
}
