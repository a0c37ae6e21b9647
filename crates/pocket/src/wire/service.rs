//! The server as one `tower` service.

use std::{
    convert::Infallible,
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request as HttpRequest, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, USER_AGENT, WARNING},
};
use rustls::pki_types::CertificateDer;

use super::{
    Authenticate, Body, body, decode,
    documents::Documents,
    negotiate, protobuf,
    route::{Route, route, verb},
};
use crate::{
    environment::BoxFuture,
    rest::{Machine, Payload, Reply, ReplyBody, Request, Served, Target, User, Verb, reply},
    status::{ApiError, Result},
};

/// Everything the server answers, as one service: bind it, or hand it to a client.
#[derive(Clone)]
pub struct Service {
    machine: Machine,
    documents: Arc<Documents>,
    caller: Caller,
}

/// How a caller is known.
#[derive(Clone)]
enum Caller {
    /// The caller shares our process and may do everything.
    Trusted,
    /// The caller shows credentials.
    Asked {
        authenticator: Arc<dyn Authenticate>,
        certificates: Arc<Vec<CertificateDer<'static>>>,
    },
}

impl Service {
    pub(crate) fn new(machine: Machine) -> Self {
        Self {
            documents: Arc::new(Documents::new(machine.registry.clone())),
            machine,
            caller: Caller::Trusted,
        }
    }

    /// The same service over another machine, sharing its documents.
    #[must_use]
    pub(crate) fn with_machine(&self, machine: Machine) -> Self {
        Self {
            machine,
            ..self.clone()
        }
    }

    /// The same service for callers who must show who they are.
    #[must_use]
    pub fn authenticated_by(&self, authenticator: Arc<dyn Authenticate>) -> Self {
        Self {
            caller: Caller::Asked {
                authenticator,
                certificates: Arc::default(),
            },
            ..self.clone()
        }
    }

    /// The same service for one connection, whose client presented these certificates.
    #[must_use]
    pub(super) fn for_connection(&self, presented: Vec<CertificateDer<'static>>) -> Self {
        let mut service = self.clone();
        if let Caller::Asked { certificates, .. } = &mut service.caller {
            *certificates = Arc::new(presented);
        }
        service
    }

    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }

    fn user(&self, headers: &HeaderMap) -> Result<User> {
        match &self.caller {
            Caller::Trusted => Ok(User {
                name: "system:admin".into(),
                groups: vec!["system:masters".into(), "system:authenticated".into()],
            }),
            Caller::Asked {
                authenticator,
                certificates,
            } => authenticator
                .authenticate(headers, certificates)
                .ok_or_else(unauthorized),
        }
    }

    async fn answer<B>(self, request: HttpRequest<B>) -> Response<Body>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let head = *request.method() == Method::HEAD;
        let yaml = negotiate::presentation(request.headers(), false).is_ok_and(|form| form.yaml);
        let mut response = match self.dispatch(request).await {
            Ok(response) => response,
            Err(error) => refusal(&error, yaml),
        };
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        if let Ok(id) = HeaderValue::from_str(&self.machine.environment.uuid()) {
            headers.insert(HeaderName::from_static("audit-id"), id);
        }
        if head {
            *response.body_mut() = Body::full(Bytes::new());
        }
        response
    }

    async fn dispatch<B>(&self, request: HttpRequest<B>) -> Result<Response<Body>>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let user = self.user(request.headers())?;
        let reads = matches!(request.method().as_str(), "GET" | "HEAD");
        match route(request.uri().path()) {
            Route::Health => Ok(text(StatusCode::OK, "ok")),
            Route::Resource(target) => self.resource(target, user, request).await,
            Route::Unknown => Ok(text(StatusCode::NOT_FOUND, "404 page not found\n")),
            _ if !reads => Err(ApiError::method_not_allowed()),
            other => Ok(self.document(&other, request.headers())),
        }
    }

    fn document(&self, route: &Route, headers: &HeaderMap) -> Response<Body> {
        match self.documents.find(route, headers) {
            Some(document) => document.respond(headers),
            None => text(StatusCode::NOT_FOUND, "404 page not found\n"),
        }
    }

    async fn resource<B>(
        &self,
        target: Target,
        user: User,
        request: HttpRequest<B>,
    ) -> Result<Response<Body>>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if !self
            .machine
            .registry
            .has_version(&target.group, &target.version)
        {
            return Ok(text(StatusCode::NOT_FOUND, "404 page not found\n"));
        }
        let served = self.machine.registry.find(&target)?;
        let query = parse_query(request.uri().query());
        let watching = query
            .iter()
            .any(|(key, value)| key == "watch" && value != "false" && value != "0");
        let verb = verb(request.method(), &target, watching)?;
        let presentation = negotiate::presentation(request.headers(), verb == Verb::Watch)?;
        let (parts, incoming) = request.into_parts();
        let content_type = media_type(&parts.headers);
        let bytes = match verb {
            Verb::Get | Verb::List | Verb::Watch => Bytes::new(),
            _ => body::read(incoming, &*self.machine.environment.clock).await?,
        };
        let body = payload(verb, &content_type, &bytes, &served, &target)?;
        let user_agent = parts
            .headers
            .get(USER_AGENT)
            .and_then(|value| value.to_str().ok());
        let reply = self
            .machine
            .handle(Request {
                verb,
                target,
                query,
                body,
                content_type,
                presentation,
                user_agent: user_agent.unwrap_or_default().to_owned(),
                user,
            })
            .await?;
        Ok(respond(reply))
    }
}

impl<B> tower::Service<HttpRequest<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

/// Reads the body in the encoding its type names.
fn payload(
    verb: Verb,
    content_type: &str,
    bytes: &[u8],
    served: &Served,
    target: &Target,
) -> Result<Option<Payload>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let decoded = match content_type {
        "" | "application/json" => decode::json(bytes)?,
        "application/yaml" | "application/apply-patch+yaml" => decode::yaml(bytes)?,
        protobuf::CONTENT_TYPE if !served.is_custom() || verb == Verb::Delete => {
            let expected = (verb != Verb::Delete
                && verb != Verb::DeleteCollection
                && target.subresource.is_none())
            .then_some((served.api_version.as_str(), served.resource.kind.as_str()));
            let value = protobuf::decode(bytes, expected)?;
            return Ok(Some(Payload {
                value,
                duplicates: Vec::new(),
            }));
        }
        // What a patch may be written in is decided where patches are understood.
        patch if verb == Verb::Patch && patch.ends_with("+json") => decode::json(bytes)?,
        _ if verb == Verb::Patch => return Ok(None),
        other => return Err(unsupported(other)),
    };
    Ok(Some(Payload {
        value: decoded.value,
        duplicates: decoded.duplicates,
    }))
}

fn unsupported(media_type: &str) -> ApiError {
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        format!(
            "the body of the request was in an unknown format ({media_type}) - accepted media types include: \
             application/json, application/yaml, {}",
            protobuf::CONTENT_TYPE
        ),
    )
}

fn unauthorized() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
}

fn media_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    value
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

fn parse_query(query: Option<&str>) -> Vec<(String, String)> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs
        .filter(|(key, _)| !key.is_empty())
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .collect()
}

pub(super) fn text(status: StatusCode, body: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

fn refusal(error: &ApiError, yaml: bool) -> Response<Body> {
    let status = error.to_value();
    let (kind, body) = match reply::yaml(&status) {
        Ok(text) if yaml => (reply::YAML, text),
        _ => (reply::JSON, status.to_string()),
    };
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = error.code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Some(seconds) = error.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn respond(reply: Reply) -> Response<Body> {
    let body = match reply.body {
        ReplyBody::Full(bytes) => Body::full(bytes),
        ReplyBody::Stream(stream) => Body::stream(stream),
    };
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    for text in &reply.warnings {
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            headers.append(WARNING, value);
        }
    }
    response
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("machine", &self.machine)
            .finish_non_exhaustive()
    }
}
