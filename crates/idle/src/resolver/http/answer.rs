//! What is answered here.

use bytes::Bytes;
use http::{
    HeaderValue, Method, Response, StatusCode,
    header::{self, HeaderName},
};
use http_body_util::Full;
use neap_kit::key::Key;
use serde_json::{Value, json};

use super::{body::Answered, probe::Canned};
use crate::{api::Breakdown, resolver::hold::Refused};

/// Where the time of a request went that was held.
pub(super) const COLD_START: HeaderName = HeaderName::from_static("x-neaptide-cold-start");
/// So many seconds until it is worth trying again.
const AGAIN: &str = "1";

const PAGE: &str = include_str!("waiting.html");

/// A rule of the service fits.
pub(super) fn canned(canned: &Canned, method: &Method) -> Response<Answered> {
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

/// Nobody is known by what the request says.
pub(super) fn unknown() -> Response<Answered> {
    json(
        StatusCode::NOT_FOUND,
        &json!({
            "error": "no service that sleeps is known by this name; \
                      it is named <service>.<namespace>, with or without .svc and the domain",
            "reason": "UnknownService",
        }),
    )
}

/// It asks for something that is not done here.
pub(super) fn not_carried(what: &str) -> Response<Answered> {
    json(
        StatusCode::NOT_IMPLEMENTED,
        &json!({"error": format!("{what} is not carried"), "reason": "NotCarried"}),
    )
}

/// Nobody took it; nothing of it was sent.
pub(super) fn refused(refused: &Refused) -> Response<Answered> {
    said(refused, &refused.to_string())
}

/// A pod took it and did not begin to answer in time.
pub(super) fn silent(late: &Refused) -> Response<Answered> {
    said(late, "a pod did not begin to answer in time")
}

fn said(refused: &Refused, error: &str) -> Response<Answered> {
    let reason = refused.reason();
    match refused {
        Refused::Late { service, breakdown } => {
            let body = json!({
                "error": error,
                "reason": reason,
                "service": service.to_string(),
                "milliseconds": breakdown,
            });
            with_cold_start(json(StatusCode::GATEWAY_TIMEOUT, &body), breakdown)
        }
        Refused::Full(service) | Refused::Gone(service) => {
            let service = service.to_string();
            unavailable(&json!({"error": error, "reason": reason, "service": service}))
        }
        Refused::Closing => unavailable(&json!({"error": error, "reason": reason})),
    }
}

/// A pod took it and broke off. It may have been done, so it is not sent again.
pub(super) fn broken(service: &Key, error: &hyper::Error) -> Response<Answered> {
    tracing::info!(%service, %error, "a pod took a request and did not answer it");
    let body = json!({
        "error": "a pod took the request and did not answer it; it is not known whether it was done",
        "reason": "PodBrokeOff",
        "service": service.to_string(),
    });
    json(StatusCode::BAD_GATEWAY, &body)
}

/// A page that looks again by itself, for people.
pub(super) fn page(service: &Key) -> Response<Answered> {
    let page = PAGE.replace("{{service}}", service.name());
    let mut answer = text(StatusCode::SERVICE_UNAVAILABLE, page);
    let headers = answer.headers_mut();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static(AGAIN));
    answer
}

/// Says where the time went.
pub(super) fn with_cold_start<B>(mut answer: Response<B>, breakdown: &Breakdown) -> Response<B> {
    let Breakdown {
        queue,
        scale,
        ready,
        connect,
        first_byte,
        ..
    } = breakdown;
    let said = format!(
        "queue;dur={queue}, scale;dur={scale}, ready;dur={ready}, connect;dur={connect}, first-byte;dur={first_byte}"
    );
    if let Ok(value) = HeaderValue::try_from(said) {
        answer.headers_mut().insert(COLD_START, value);
    }
    answer
}

fn unavailable(body: &Value) -> Response<Answered> {
    let mut answer = json(StatusCode::SERVICE_UNAVAILABLE, body);
    let again = HeaderValue::from_static(AGAIN);
    answer.headers_mut().insert(header::RETRY_AFTER, again);
    answer
}

fn json(status: StatusCode, body: &Value) -> Response<Answered> {
    let mut answer = text(status, format!("{body}\n"));
    let kind = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

fn text(status: StatusCode, body: String) -> Response<Answered> {
    let mut answer = Response::new(Answered::Here(Full::new(Bytes::from(body))));
    *answer.status_mut() = status;
    answer
}
