//! The server as one `tower` service.

use std::{
    convert::Infallible,
    fmt,
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request as HttpRequest, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, UPGRADE, USER_AGENT},
};
use rustls::pki_types::CertificateDer;
use tokio::sync::watch;

use super::{
    Authenticate, Body, authenticate, body,
    documents::Documents,
    form,
    half_close::OpenAnswers,
    host, metrics, negotiate, openid,
    payload::payload,
    request_metrics::RequestMetrics,
    responses::{cause, defect, no_page, nothing, refusal, text},
    route::{Route, route, verb},
    sessions::Sessions,
    swagger, warnings,
};
use crate::{
    environment::{BoxFuture, PollOnWake, lane},
    rest::{
        Machine, Presentation, Reply, ReplyBody, Request, Served, Target, User, Verb, is_yes,
        registry::missing,
    },
    status::{ApiError, Result},
};

/// Bytes from which the body of a request is handled on the patient lane.
const LARGE_BODY_BYTES: usize = 64 << 10;
/// Connections on a socket, at most, whatever the embedding program allows.
const MAX_CONNECTIONS: usize = 20_000;

/// The whole server as one service: bind it to a socket, or pass it to a client.
#[derive(Clone)]
pub struct Service {
    machine: Machine,
    documents: Arc<Documents>,
    caller: Caller,
    room: body::BodyBudget,
    /// Limits the commands that clients may run at the same time.
    pub(super) sessions: Sessions,
    /// The server's address.
    address: Arc<str>,
    /// Connections on a socket at a time, at most.
    max_connections: usize,
    /// Turns true when the server stops; streams that do not end by themselves end then.
    stopped: Option<watch::Receiver<bool>>,
    /// The open answers of the connection, if there is one.
    answers: Option<OpenAnswers>,
    pub(super) metrics: RequestMetrics,
}

/// How callers are authenticated.
#[derive(Clone)]
enum Caller {
    /// The caller is in this process and allowed everything.
    Trusted,
    /// The caller presents credentials.
    Asked {
        certificates: Arc<Vec<CertificateDer<'static>>>,
        /// Whether a caller without credentials is the anonymous user.
        anonymous: bool,
    },
}

impl Service {
    /// A server whose address is `address`.
    pub(crate) fn new(machine: Machine, address: String) -> Self {
        Self {
            address: address.as_str().into(),
            documents: Arc::new(Documents::new(
                machine.registry.clone(),
                machine.runtime.is_some(),
                address,
            )),
            machine,
            caller: Caller::Trusted,
            room: body::BodyBudget::default(),
            sessions: Sessions::default(),
            max_connections: MAX_CONNECTIONS,
            stopped: None,
            answers: None,
            metrics: RequestMetrics::default(),
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

    /// The same service for callers who must authenticate.
    #[must_use]
    pub fn authenticated_by(&self, authenticator: Arc<dyn Authenticate>) -> Self {
        Self {
            machine: self.machine.with_authenticator(authenticator),
            caller: Caller::Asked {
                certificates: Arc::default(),
                anonymous: false,
            },
            ..self.clone()
        }
    }

    /// The same service, where a caller without credentials is `system:anonymous` or, by default,
    /// refused.
    #[must_use]
    pub fn with_anonymous(&self, allowed: bool) -> Self {
        let mut service = self.clone();
        if let Caller::Asked { anonymous, .. } = &mut service.caller {
            *anonymous = allowed;
        }
        service
    }

    /// The same service, which accepts this many connections at a time on a socket. The process
    /// needs descriptors beside those of its clients: without one, no write can be stored.
    #[must_use]
    pub fn with_max_connections(&self, count: usize) -> Self {
        Self {
            max_connections: count.clamp(1, MAX_CONNECTIONS),
            ..self.clone()
        }
    }

    pub(super) fn max_connections(&self) -> usize {
        self.max_connections
    }

    /// The same service for one connection, whose client presented these certificates and whose
    /// streams end when `stopped` turns true.
    #[must_use]
    pub(super) fn for_connection(
        &self,
        presented: Vec<CertificateDer<'static>>,
        stopped: watch::Receiver<bool>,
        answers: OpenAnswers,
    ) -> Self {
        let mut service = self.clone();
        service.stopped = Some(stopped);
        service.answers = Some(answers);
        service.room = service.room.of_connection();
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
                ..User::default()
            }),
            Caller::Asked {
                certificates,
                anonymous,
            } => authenticate::user(&self.machine, headers, certificates, *anonymous),
        }
    }

    async fn answer<B>(self, request: HttpRequest<B>) -> Response<Body>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let head = *request.method() == Method::HEAD;
        let yaml =
            negotiate::presentation(request.headers(), Verb::Get, true).is_ok_and(|form| form.yaml);
        let place = format!("{} {}", request.method(), request.uri().path());
        let labels = self.labels(&request);
        let reads = matches!(request.method().as_str(), "GET" | "HEAD");
        let underway = self.metrics.begin(!reads);
        let began = self.machine.environment.clock.now();
        // A request that meets a defect must not end the server, nor stay without a response.
        let answered = AssertUnwindSafe(self.dispatch(request))
            .catch_unwind()
            .await;
        let id = self.machine.environment.uuid();
        let mut response = match answered {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => refusal(&error, yaml),
            Err(panic) => {
                tracing::error!(audit = %id, cause = cause(&*panic), "{place} panicked");
                refusal(&defect(&id), yaml)
            }
        };
        drop(underway);
        let now = self.machine.environment.clock.now();
        let took = Duration::try_from(now.duration_since(began)).unwrap_or_default();
        let took = (labels.verb != "WATCH").then_some(took);
        self.metrics
            .record(labels, response.status().as_u16(), took);
        let headers = response.headers_mut();
        headers
            .entry(CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-cache, private"));
        if let Ok(id) = HeaderValue::from_str(&id) {
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
        if self.answers.is_some() {
            host::check(request.version(), request.uri(), request.headers())?;
        }
        let user = self.user(request.headers())?;
        let user = self.permit(user, &request)?;
        let reads = matches!(request.method().as_str(), "GET" | "HEAD");
        match route(request.uri().path()) {
            Route::Alive => Ok(text(StatusCode::OK, "ok")),
            Route::Ready => Ok(self.health()),
            Route::Resource(target) => self.resource(target, user, request).await,
            Route::Nowhere(group) => self.nowhere(&group),
            Route::Unknown => Ok(no_page()),
            _ if !reads => Err(ApiError::method_not_allowed()),
            Route::Metrics => Ok(self.prometheus()),
            Route::Swagger => Ok(swagger::respond(request.headers())),
            Route::TokenIssuer => Ok(openid::issuer(&self.machine.accounts, &self.address)),
            Route::TokenKeys => openid::keys(&self.machine.accounts),
            other => Ok(self.document(&other, request.headers())),
        }
    }

    /// Whether requests can be handled: a store that refuses writes is not healthy.
    fn health(&self) -> Response<Body> {
        match self.machine.view.store().broken() {
            None => text(StatusCode::OK, "ok"),
            Some(cause) => text(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("the store takes no writes: {cause}\n"),
            ),
        }
    }

    fn document(&self, route: &Route, headers: &HeaderMap) -> Response<Body> {
        match self.documents.find(route, headers) {
            Some(document) => document.respond(headers),
            None => match route {
                Route::Version(group, _) => self
                    .nowhere(group)
                    .unwrap_or_else(|error| refusal(&error, false)),
                Route::OpenApi(..) => nothing(),
                _ => no_page(),
            },
        }
    }

    /// 404: a `Status` in built-in groups, plain where custom resources could be.
    fn nowhere(&self, group: &str) -> Result<Response<Body>> {
        if self.machine.registry.is_own_group(group) {
            return Err(missing());
        }
        Ok(no_page())
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
        if target.group == metrics::GROUP && self.machine.runtime.is_some() {
            let query = parse_query(request.uri().query());
            let reply = metrics::answer(&self.machine, request.method(), &target, &query).await?;
            return Ok(self.respond(reply));
        }
        if !self
            .machine
            .registry
            .has_version(&target.group, &target.version)
        {
            return self.nowhere(&target.group);
        }
        let Ok(served) = self.machine.registry.find(&target) else {
            return self.nowhere(&target.group);
        };
        let warnings: Vec<String> = served.deprecation().into_iter().collect();
        let answered = self.resource_of(target, &served, user, request).await;
        answered.map_err(|mut error| {
            error.warnings.splice(0..0, warnings);
            error
        })
    }

    /// Reads the body of a request. A large one is handled on the patient lane: parsing, validating and
    /// merging it takes a while.
    async fn read_body<B>(&self, incoming: B) -> Result<body::Incoming>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let left = async {
            match &self.answers {
                Some(answers) => answers.client_left().await,
                None => std::future::pending().await,
            }
        };
        let clock = &*self.machine.environment.clock;
        let read = body::read(incoming, &self.room, clock, left).await?;
        if read.bytes.len() >= LARGE_BODY_BYTES {
            lane::patient().await;
        }
        Ok(read)
    }

    async fn resource_of<B>(
        &self,
        target: Target,
        served: &Arc<Served>,
        user: User,
        request: HttpRequest<B>,
    ) -> Result<Response<Body>>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let query = parse_query(request.uri().query());
        if Self::is_exec(&target) {
            return self.exec(&target, served, &query, user, request).await;
        }
        if Self::is_forward(&target) {
            return self.forward(&target, served, &query, user, request).await;
        }
        let watching = query
            .iter()
            .find(|(key, _)| key == "watch")
            .is_some_and(|(_, value)| is_yes(value));
        let verb = verb(request.method(), &target, watching)
            .map_err(|error| form::misplaced(served, request.method(), error))?;
        let there = is_there(served, &target);
        let presentation =
            match negotiate::presentation(request.headers(), verb, served.is_custom()) {
                // A missing subresource is missing in any form.
                Err(_) if !there => Presentation::default(),
                asked => asked?,
            };
        let (parts, incoming) = request.into_parts();
        let content_type = media_type(&parts.headers);
        let incoming = match verb {
            Verb::Get | Verb::List | Verb::Watch => body::Incoming::default(),
            _ => self.read_body(incoming).await?,
        };
        let user_agent = parts
            .headers
            .get(USER_AGENT)
            .and_then(|value| value.to_str().ok());
        let mut request = Request {
            verb,
            target,
            query,
            body: None,
            content_type,
            presentation,
            user_agent: user_agent.unwrap_or_default().to_owned(),
            user,
        };
        // The options are validated before the body.
        if there && form::is_readable(verb, &request.content_type, served.is_custom()) {
            request.check_options()?;
        }
        let kind = &request.content_type;
        let lenient = request.parameter("fieldValidation") == Some("Ignore");
        let form = form::Patch::of(kind, lenient);
        if there {
            request.body = payload(verb, form, kind, &incoming.bytes, served, &request.target)?;
        }
        let reply = self.machine.handle(request).await?;
        Ok(self.respond(reply))
    }

    fn respond(&self, reply: Reply) -> Response<Body> {
        let body = match (reply.body, self.stopped.clone()) {
            (ReplyBody::Full(bytes), _) => Body::full(bytes),
            (ReplyBody::Parts(stream), _) | (ReplyBody::Stream(stream), None) => {
                Body::stream(stream)
            }
            (ReplyBody::Stream(stream), Some(mut stopped)) => {
                // A dropped sender means that the server has stopped too.
                let stop = async move { drop(stopped.wait_for(|stopped| *stopped).await) };
                Body::stream(stream.take_until(PollOnWake::new(stop)).boxed())
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = reply.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
        warnings::insert(&reply.warnings, headers);
        response
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
        // An upgraded connection is no longer the server's. All other answers count from here on: the
        // connection may be polled for its end before the answer is.
        let upgrades = request.headers().contains_key(UPGRADE);
        let answers = service.answers.as_ref().filter(|_| !upgrades);
        let answering = answers.map(OpenAnswers::begin);
        Box::pin(async move {
            let response = service.answer(request).await;
            Ok(response.map(|body| body.answering(answering)))
        })
    }
}

/// Whether a subresource exists. The path after the subresource of a custom object is ignored.
fn is_there(served: &Served, target: &Target) -> bool {
    let name = target.subresource.as_deref();
    let name = name.map(|name| match name.split_once('/') {
        Some((first, _)) if served.is_custom() => first,
        _ => name,
    });
    name.is_none_or(|name| served.subresource(name).is_some())
}

pub(super) fn media_type(headers: &HeaderMap) -> String {
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

pub(super) fn parse_query(query: Option<&str>) -> Vec<(String, String)> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs
        .filter(|(key, _)| !key.is_empty())
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .collect()
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("machine", &self.machine)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
