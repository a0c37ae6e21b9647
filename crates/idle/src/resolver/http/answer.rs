//! What is answered here.

use bytes::Bytes;
use http::{
    HeaderValue, Method, Response, StatusCode, Version,
    header::{self, HeaderName},
};
use http_body_util::Full;
use neap_kit::key::Key;
use percent_encoding::{AsciiSet, CONTROLS};
use serde_json::{Value, json};

use super::{body::Answered, probe::Canned};
use crate::{api::Breakdown, resolver::hold::Refused};

/// Where the time of a request went that was held.
pub(super) const COLD_START: HeaderName = HeaderName::from_static("x-neaptide-cold-start");
/// So many seconds until it is worth trying again.
const AGAIN: &str = "1";

/// Why a client was not served, in one word, where nobody refused it.
pub(in crate::resolver) const UNKNOWN: &str = "UnknownService";
pub(super) const GONE: &str = "ServiceGone";
pub(super) const NOT_CARRIED: &str = "NotCarried";
pub(super) const BROKEN: &str = "PodBrokeOff";
pub(super) const BAD: &str = "BadRequest";
pub(super) const LEFT: &str = "ClientLeft";
/// Either of the two, for people.
pub(super) const UNREAD: &str = "the body of the request cannot be read";

/// What is escaped in a message of gRPC.
const NOT_PLAIN: &AsciiSet = &CONTROLS.add(b'%');

/// What was said is wrong.
#[derive(Clone)]
struct Said {
    /// For people.
    error: String,
    /// For clients of gRPC.
    code: &'static str,
}

/// What codes of gRPC say. Only the last may be tried again: nothing was sent.
const NOT_KNOWN_WHETHER_DONE: &str = "2";
const NOT_IN_TIME: &str = "4";
const UNIMPLEMENTED: &str = "12";
const UNAVAILABLE: &str = "14";

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
            "reason": UNKNOWN,
        }),
    )
}

/// Whoever answers on this port answered for a service that is no longer one of ours.
pub(super) fn gone(version: Version) -> Response<Answered> {
    let mut answer = unavailable(&json!({
        "error": "the service is no longer known here; a new connection reaches it",
        "reason": GONE,
    }));
    // Over HTTP/2 a connection is ended by other means.
    if version != Version::HTTP_2 {
        let close = HeaderValue::from_static("close");
        answer.headers_mut().insert(header::CONNECTION, close);
    }
    answer
}

/// The client broke off in the middle of what it sent, or sent nonsense.
pub(super) fn unread() -> Response<Answered> {
    let body = json!({"error": UNREAD, "reason": BAD});
    json(StatusCode::BAD_REQUEST, &body)
}

/// What was answered here as clients of gRPC understand it: to them JSON is a broken message.
pub(super) fn in_grpc(answer: Response<Answered>) -> Response<Answered> {
    let (head, body) = answer.into_parts();
    let Some(Said { error, code }) = head.extensions.get() else {
        return Response::from_parts(head, body);
    };
    let mut answer = text(StatusCode::OK, String::new());
    let headers = answer.headers_mut();
    let message = percent_encoding::utf8_percent_encode(error, NOT_PLAIN).to_string();
    let said = [
        (header::CONTENT_TYPE, "application/grpc"),
        (HeaderName::from_static("grpc-status"), code),
        (HeaderName::from_static("grpc-message"), &message),
    ];
    for (name, value) in said {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    if let Some(cold) = head.headers.get(COLD_START) {
        headers.insert(COLD_START, cold.clone());
    }
    answer
}

/// It asks for something that is not done here.
pub(super) fn not_carried(what: &str) -> Response<Answered> {
    json(
        StatusCode::NOT_IMPLEMENTED,
        &json!({"error": format!("{what} is not carried"), "reason": NOT_CARRIED}),
    )
}

/// Nobody took it; nothing of it was sent.
pub(super) fn refused(refused: &Refused) -> Response<Answered> {
    let error = match refused {
        Refused::Late { breakdown, .. } => format!("{refused}: {}", breakdown.most()),
        _ => refused.to_string(),
    };
    said(refused, &error)
}

/// A pod took it and did not begin to answer in time.
pub(super) fn silent(late: &Refused) -> Response<Answered> {
    let error = match late {
        Refused::Late { breakdown, .. } => breakdown.most(),
        _ => String::new(),
    };
    let error = format!("a pod did not begin to answer in time: {error}");
    let mut answer = said(late, &error);
    let code = NOT_IN_TIME;
    answer.extensions_mut().insert(Said { error, code });
    answer
}

/// What clients are told of a wake that failed.
const NOT_WOKEN: &str = "the operator could not wake it; the resolver's log says why";

fn said(refused: &Refused, error: &str) -> Response<Answered> {
    let reason = refused.reason();
    match refused {
        Refused::Late {
            service,
            breakdown,
            not_woken,
        } => {
            let mut body = json!({
                "error": error,
                "reason": reason,
                "service": service.to_string(),
                "milliseconds": breakdown,
            });
            if not_woken.is_some() {
                // Why names accounts and addresses of the cluster, which are no client's business.
                body["wakeFailed"] = NOT_WOKEN.into();
            }
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
pub(super) fn broken(service: &Key) -> Response<Answered> {
    let body = json!({
        "error": "a pod took the request and did not answer it; it is not known whether it was done",
        "reason": BROKEN,
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
    let parts = breakdown.parts();
    let parts = parts.map(|(part, took)| format!("{};dur={took}", part.replace('_', "-")));
    let said = parts.join(", ");
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
    let error = body["error"].as_str().unwrap_or_default().to_owned();
    let code = match status {
        StatusCode::BAD_GATEWAY => NOT_KNOWN_WHETHER_DONE,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => UNAVAILABLE,
        _ => UNIMPLEMENTED,
    };
    answer.extensions_mut().insert(Said { error, code });
    let kind = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

fn text(status: StatusCode, body: String) -> Response<Answered> {
    let mut answer = Response::new(Answered::Here(Full::new(Bytes::from(body))));
    *answer.status_mut() = status;
    answer
}
