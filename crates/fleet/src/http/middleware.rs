//! What happens to every request: correlation, authentication, body.

use std::{panic::AssertUnwindSafe, time::Duration};

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use http::{HeaderMap, Method, StatusCode, header};
use neap_kit::{
    clock::Clock,
    http::{BodyError, RequestId, read_json},
};
use serde_json::{Value, json};

use super::{Failure, Frontend, MAX_BODY, OriginalPath, answer::set_header};
use crate::{
    api::{self, ApiVersion},
    cloud_error::CloudError,
    documents::text,
};

/// A request whose body was read or is not needed.
pub(super) type Head = http::Request<()>;

/// The head and the body of a request.
pub(super) fn split(request: Request) -> (Head, Body) {
    let (parts, body) = request.into_parts();
    (Head::from_parts(parts, ()), body)
}

const CLIENT_REQUEST_ID: &str = "x-ms-client-request-id";
const PRINCIPAL: &str = "x-ms-client-principal-name";

/// Echoes what clients correlate by.
pub(super) async fn headers(request: Request, next: Next) -> Response {
    let names = [
        "x-ms-return-client-request-id",
        CLIENT_REQUEST_ID,
        "x-ms-correlation-request-id",
    ];
    let [wanted, client_id, correlation] =
        names.map(|name| header_text(request.headers(), name).map(str::to_owned));
    let mut response = next.run(request).await;
    if wanted.is_some_and(|it| it.eq_ignore_ascii_case("true"))
        && let Some(id) = client_id
    {
        set_header(&mut response, CLIENT_REQUEST_ID, &id);
    }
    if let Some(id) = correlation {
        set_header(&mut response, "x-ms-correlation-request-id", &id);
    }
    response
}

/// Answers when a handler panics: the client is told, and its connection stays.
pub(super) async fn contain(request: Request, next: Next) -> Response {
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    answered.unwrap_or_else(|_| {
        // The panic itself is in the log already.
        tracing::error!("a request was not answered because its handler panicked");
        let what = "The provider could not handle the request.";
        Failure(CloudError::internal(what)).into_response()
    })
}

/// The time in which a request is answered.
const DEADLINE: Duration = Duration::from_secs(30);

/// Answers when the database or a cluster does not. What the request had begun is abandoned: a transaction
/// that was not committed leaves nothing.
pub(super) async fn deadline(
    State(frontend): State<Frontend>,
    request: Request,
    next: Next,
) -> Response {
    let answered = frontend.clock.within(DEADLINE, next.run(request)).await;
    answered.unwrap_or_else(|| {
        let message = format!(
            "The request was not answered within {} seconds. Read the resource to see whether it took effect, and send it again if it did not.",
            DEADLINE.as_secs()
        );
        Failure(CloudError::new(503, "RequestTimeout", "", message)).into_response()
    })
}

pub(super) fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let text = headers.get(name)?.to_str().ok()?;
    (text.len() <= 1024).then_some(text)
}

/// Refuses callers that are not accepted. Any caller may read the readiness.
pub(super) async fn authenticate(
    State(frontend): State<Frontend>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    if path == "/healthz/ready" {
        return next.run(request).await;
    }
    let is_admin = path.starts_with("/admin/")
        || path == "/admin"
        || query(&request, "api-version").as_deref() == Some("admin");
    if !frontend
        .authorizer
        .allows(&request, is_admin, frontend.clock)
    {
        let error = CloudError::new(403, "Forbidden", "", "Forbidden.");
        return Failure(error).into_response();
    }
    next.run(request).await
}

/// Gives the refusals of the router the form of all others: it answers with a text, or with nothing.
pub(super) async fn envelope(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let response = next.run(request).await;
    let (code, message) = match response.status() {
        StatusCode::METHOD_NOT_ALLOWED => (
            "MethodNotAllowed",
            format!("The method '{method}' is not allowed for this path."),
        ),
        StatusCode::BAD_REQUEST => (
            "InvalidRequestContent",
            "The path of the request is invalid: a part of it is no text.".to_owned(),
        ),
        _ => return response,
    };
    if header_text(response.headers(), header::CONTENT_TYPE.as_str()) == Some("application/json") {
        return response;
    }
    let error = CloudError::new(response.status().as_u16(), code, "", message);
    let mut answer = Failure(error).into_response();
    if let Some(allowed) = response.headers().get(header::ALLOW) {
        answer.headers_mut().insert(header::ALLOW, allowed.clone());
    }
    answer
}

/// The answer for an unknown path.
pub(super) async fn not_found() -> Response {
    let message = "The requested path could not be found.";
    Failure(CloudError::new(404, "NotFound", "", message)).into_response()
}

/// A parameter of the query.
pub(super) fn query<B>(request: &http::Request<B>, name: &str) -> Option<String> {
    let query = request.uri().query()?;
    let pairs = form_urlencoded::parse(query.as_bytes());
    let mut found = pairs.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.into_owned())
}

/// Whether the request only asks what would happen. What is no answer to that is refused: a request that was meant
/// as a dry run must not be carried out.
pub(super) fn is_dry<B>(request: &http::Request<B>) -> Result<bool, CloudError> {
    let query = request.uri().query().unwrap_or_default();
    let pairs = form_urlencoded::parse(query.as_bytes());
    let mut found = pairs.filter(|(key, _)| key.eq_ignore_ascii_case("dryrun"));
    found.try_fold(false, |is_dry, (_, value)| {
        match () {
            () if value.eq_ignore_ascii_case("true") => Ok(true),
            () if value.eq_ignore_ascii_case("false") => Ok(is_dry),
            () => {
                let message = format!("The value '{value}' of the parameter dryRun is invalid: it can be true or false. Nothing was done.");
                Err(CloudError::invalid("dryRun", message))
            }
        }
    })
}

/// Refuses dry runs on routes that have none: they would be carried out.
pub(super) async fn without_dry_run(request: Request, next: Next) -> Response {
    let is_dry = if request.method() == Method::GET {
        Ok(false)
    } else {
        is_dry(&request)
    };
    match is_dry {
        Ok(false) => next.run(request).await,
        Ok(true) => {
            let message = "This request has no dry run: send it without the parameter dryRun to carry it out. Nothing was done.";
            Failure(CloudError::invalid("dryRun", message)).into_response()
        }
        Err(error) => Failure(error).into_response(),
    }
}

/// Who sends a request, for the audit: the name that the gateway of administrators passes on, or the user that ARM
/// names.
pub(super) fn actor(request: &Head, is_admin: bool, system_data: &Value) -> String {
    if is_admin {
        let name = header_text(request.headers(), PRINCIPAL).unwrap_or_default();
        return if name.is_empty() {
            "an administrator".to_owned()
        } else {
            name.to_owned()
        };
    }
    match text(system_data, "/lastModifiedBy") {
        "" => "ARM".to_owned(),
        user => format!("{user} through ARM"),
    }
}

/// What a row of the audit says about the request that it came from.
pub(super) fn audited(request: &Head) -> String {
    let id = request.extensions().get::<RequestId>();
    let correlation = header_text(request.headers(), "x-ms-correlation-request-id");
    format!(
        "request {}, correlation {}",
        id.map_or("", |id| id.0.as_str()),
        correlation.unwrap_or_default()
    )
}

/// The API version of a request about resources of this type.
pub(super) fn api_version(
    request: &Head,
    namespace: &str,
    kind: &str,
) -> Result<&'static ApiVersion, CloudError> {
    let name = query(request, "api-version").unwrap_or_default();
    api::find(&name).ok_or_else(|| {
        let known: Vec<_> = api::names().filter(|it| *it != "admin").collect();
        let message = format!(
            "The resource type '{kind}' could not be found in the namespace '{namespace}' for api version '{name}': this provider knows {known:?}."
        );
        CloudError::bad_request("InvalidResourceType", "", message)
    })
}

/// The body of a request that must have one.
pub(super) async fn body(request: Request) -> Result<(Head, Value), CloudError> {
    let (request, body) = optional_body(request).await?;
    let body = body.ok_or_else(|| {
        CloudError::bad_request("InvalidRequestContent", "", "The request has no body.")
    })?;
    Ok((request, body))
}

/// The body of a request that may have one.
pub(super) async fn optional_body(request: Request) -> Result<(Head, Option<Value>), CloudError> {
    let (head, body) = split(request);
    let kind = header_text(head.headers(), header::CONTENT_TYPE.as_str()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_owned();
    let value = read_json(body, MAX_BODY)
        .await
        .map_err(|error| match error {
            BodyError::TooLong(_) => CloudError::bad_request(
                "InvalidResource",
                "",
                format!(
                    "The resource definition is invalid: its body is longer than {MAX_BODY} bytes."
                ),
            ),
            error => CloudError::bad_request(
                "InvalidRequestContent",
                "",
                format!("The request content was invalid and could not be deserialized: {error}."),
            ),
        })?;
    let is_empty = value.is_none() && kind.is_empty();
    if !is_empty && !kind.eq_ignore_ascii_case("application/json") {
        let message = format!(
            "The content media type '{kind}' is not supported. Only 'application/json' is supported."
        );
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE.as_u16();
        return Err(CloudError::new(status, "UnsupportedMediaType", "", message));
    }
    Ok((head, value))
}

/// What a request is found by in the log and in documents.
pub(super) fn correlation(request: &Head, clock: Clock, is_admin: bool) -> Value {
    let of = |name: &str| header_text(request.headers(), name).unwrap_or_default();
    let id = request.extensions().get::<RequestId>();
    let principal = if is_admin { of(PRINCIPAL) } else { "" };
    json!({
        "correlationId": of("x-ms-correlation-request-id"),
        "clientRequestId": of(CLIENT_REQUEST_ID),
        "requestId": id.map(|id| id.0.clone()).unwrap_or_default(),
        "clientPrincipalName": principal,
        "requestTime": clock.now().to_string(),
    })
}

/// Who changes a resource, as ARM says it.
pub(super) fn system_data(request: &Head) -> Value {
    let header = header_text(request.headers(), "x-ms-arm-resource-system-data");
    let parsed = header.map(serde_json::from_str);
    match parsed {
        Some(Ok(value @ Value::Object(_))) => value,
        Some(_) => {
            tracing::warn!("the header X-Ms-Arm-Resource-System-Data is no JSON object");
            Value::Null
        }
        None => Value::Null,
    }
}

/// The path as the client wrote it.
pub(super) fn original_path(request: &Head) -> String {
    let original = request.extensions().get::<OriginalPath>();
    original.map_or_else(|| request.uri().path().to_owned(), |it| it.0.clone())
}

/// The address under which the client sees this provider: that of `Referer`, which ARM sets.
pub(super) fn referer(request: &Head) -> http::Uri {
    let referer = header_text(request.headers(), header::REFERER.as_str());
    let referer = referer.and_then(|it| it.parse::<http::Uri>().ok());
    let own = || {
        let host = header_text(request.headers(), header::HOST.as_str());
        let host = host.or_else(|| request.uri().authority().map(http::uri::Authority::as_str));
        let host = host.unwrap_or("localhost:8443");
        // Over HTTP/2 the URI has a scheme and an authority of its own.
        let path = request.uri().path_and_query().map_or("/", |it| it.as_str());
        format!("https://{host}{path}").parse().ok()
    };
    referer
        .filter(|it| it.authority().is_some())
        .or_else(own)
        .unwrap_or_else(|| http::Uri::from_static("https://localhost:8443/"))
}

/// The URL of `path`, as the client sees it.
pub(super) fn link(request: &Head, path: &str, query: &str) -> String {
    let referer = referer(request);
    let scheme = referer.scheme_str().unwrap_or("https");
    let authority = referer
        .authority()
        .map_or("localhost:8443", |it| it.as_str());
    format!("{scheme}://{authority}{path}?{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(builder: http::request::Builder) -> String {
        link(&builder.body(()).unwrap(), "/operations/1", "api-version=1")
    }

    #[test]
    fn links_lead_to_where_the_request_was_sent_unless_arm_says_otherwise() {
        let to = |uri: &str| http::Request::builder().uri(uri);
        let own = "https://127.1.0.4:8443/operations/1?api-version=1";
        // HTTP/1.1 has the host in a header, HTTP/2 in the URI.
        let first = to("/clusters/a?b=c").header("host", "127.1.0.4:8443");
        assert_eq!(shown(first), own);
        assert_eq!(shown(to("https://127.1.0.4:8443/clusters/a?b=c")), own);
        let arm = "https://arm.example.com/clusters/a";
        let through = to("https://127.1.0.4:8443/clusters/a").header("referer", arm);
        let expected = "https://arm.example.com/operations/1?api-version=1";
        assert_eq!(shown(through), expected);
    }
}
