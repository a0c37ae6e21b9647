//! A proxy between controllers and the server that can fail, hold and observe requests.

use std::{collections::HashSet, convert::Infallible, sync::Arc};

use anyhow::Result;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use kube::{Client, client::Body};
use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// A request, before it is forwarded or after the server has responded.
#[derive(Debug)]
pub(crate) struct ProxiedRequest<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    /// Whether the server has responded already.
    pub(crate) done: bool,
}

impl ProxiedRequest<'_> {
    /// Whether the request will create an object of this kind.
    pub(crate) fn creates(&self, kind: &str) -> bool {
        !self.done && self.is_creation(kind)
    }

    /// Whether the request has created an object of this kind, and the response is not yet sent.
    pub(crate) fn has_created(&self, kind: &str) -> bool {
        self.done && self.is_creation(kind)
    }

    pub(crate) fn is_write(&self) -> bool {
        self.method != Method::GET
    }

    fn is_creation(&self, kind: &str) -> bool {
        self.method == Method::POST && self.path.ends_with(&format!("/{kind}"))
    }
}

/// What the proxy does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestAction {
    Pass,
    /// The proxy responds with this status code.
    Refuse(u16),
    /// The proxy closes the connection without a response.
    Disconnect,
    /// The proxy holds the request until [`FaultProxy::release`].
    Hold,
}

type Rule = Box<dyn FnMut(&ProxiedRequest<'_>) -> RequestAction + Send>;
type Answer = Response<UnsyncBoxBody<Bytes, anyhow::Error>>;

/// The proxy.
pub(crate) struct FaultProxy {
    pub(crate) url: String,
    shared: Arc<ProxyState>,
    _task: JoinSet<()>,
}

struct ProxyState {
    server: Client,
    rule: Mutex<Rule>,
    /// Kinds whose watch events are held back.
    blocked: watch::Sender<HashSet<String>>,
    /// Kinds of the watches that were opened since the last call of `block_watches`.
    watched: watch::Sender<Vec<String>>,
    /// Paths that were read since then.
    read: watch::Sender<Vec<String>>,
    /// The number of requests that were held, and whether requests are held.
    held: watch::Sender<(usize, bool)>,
    /// Method and path of successful writes.
    writes: Mutex<Vec<(Method, String)>>,
}

impl FaultProxy {
    pub(crate) async fn open(server: Client) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(ProxyState {
            server,
            rule: Mutex::new(Box::new(|_| RequestAction::Pass)),
            blocked: watch::Sender::default(),
            watched: watch::Sender::default(),
            read: watch::Sender::default(),
            held: watch::Sender::new((0, true)),
            writes: Mutex::default(),
        });
        let mut task = JoinSet::new();
        task.spawn(serve(listener, shared.clone()));
        Self {
            url,
            shared,
            _task: task,
        }
    }

    /// Sets the rule that decides what happens to requests.
    pub(crate) fn rule(
        &self,
        rule: impl FnMut(&ProxiedRequest<'_>) -> RequestAction + Send + 'static,
    ) {
        *self.shared.rule.lock() = Box::new(rule);
    }

    /// Holds back the events of watches of this kind until [`Self::unblock_watches`].
    pub(crate) fn block_watches(&self, kind: &str) {
        self.shared.watched.send_modify(Vec::clear);
        self.shared.read.send_modify(Vec::clear);
        self.shared.blocked.send_modify(|blocked| {
            blocked.insert(kind.to_owned());
        });
    }

    pub(crate) fn unblock_watches(&self) {
        self.shared.blocked.send_modify(HashSet::clear);
    }

    /// Waits until a client watches this kind, after its initial list.
    pub(crate) async fn watches(&self, kind: &str) {
        let mut watched = self.shared.watched.subscribe();
        let watched = watched.wait_for(|watched| watched.iter().any(|other| other == kind));
        watched.await.unwrap();
    }

    /// Waits until a client reads an object whose path has this suffix.
    pub(crate) async fn reads(&self, path: &str) {
        let mut read = self.shared.read.subscribe();
        let read = read.wait_for(|read| read.iter().any(|other| other.ends_with(path)));
        read.await.unwrap();
    }

    /// Waits until the object was read twice from now on. The first read may belong to a reconcile that
    /// had started before; by the second read, that reconcile has ended.
    pub(crate) async fn rereads(&self, path: &str) {
        let count = |read: &Vec<String>| read.iter().filter(|other| other.ends_with(path)).count();
        let mut read = self.shared.read.subscribe();
        let before = count(&read.borrow());
        let again = read.wait_for(|read| count(read) >= before + 2);
        again.await.unwrap();
    }

    /// Waits until a request is held.
    pub(crate) async fn holds(&self) {
        let mut held = self.shared.held.subscribe();
        held.wait_for(|(count, _)| *count > 0).await.unwrap();
    }

    /// Forwards the held requests.
    pub(crate) fn release(&self) {
        self.shared.held.send_modify(|(_, holds)| *holds = false);
    }

    /// The number of objects of a kind that were created through the proxy.
    pub(crate) fn created(&self, kind: &str) -> usize {
        let done = self.shared.writes.lock();
        let made = done
            .iter()
            .filter(|(method, path)| method == Method::POST && path.ends_with(&format!("/{kind}")));
        made.count()
    }

    /// The number of writes through the proxy, except those of leases.
    pub(crate) fn writes(&self) -> usize {
        let done = self.shared.writes.lock();
        let without_leases = done.iter().filter(|(_, path)| !path.contains("/leases"));
        without_leases.count()
    }
}

async fn serve(listener: TcpListener, shared: Arc<ProxyState>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(connected(stream, shared.clone()));
    }
}

async fn connected(stream: TcpStream, shared: Arc<ProxyState>) {
    let service = service_fn(|request| pass(request, shared.clone()));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // Connections may end early on either side.
    let _ = connection.await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "the requests of the controllers are small"
)]
async fn pass(request: Request<Incoming>, shared: Arc<ProxyState>) -> Result<Answer> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
    if let Some(refusal) = shared.action(&method, &path, false).await? {
        return Ok(refusal);
    }
    let query = parts.uri.query().unwrap_or_default();
    let watches = query.contains("watch=true") || query.contains("watch=1");
    let mut forwarded = Request::builder()
        .method(parts.method)
        .uri(parts.uri.path_and_query().unwrap().as_str());
    for (name, value) in &parts.headers {
        if name != http::header::HOST {
            forwarded = forwarded.header(name, value);
        }
    }
    let forwarded = forwarded.body(Body::from(body.to_vec()))?;
    let answer = shared.server.send(forwarded).await?;
    if method == Method::GET {
        shared.read.send_modify(|all| all.push(path.clone()));
    } else if answer.status().is_success() {
        shared.writes.lock().push((method.clone(), path.clone()));
        if let Some(refusal) = shared.action(&method, &path, true).await? {
            return Ok(refusal);
        }
    }
    let kind = path.rsplit('/').next().unwrap_or_default().to_owned();
    if watches {
        shared.watched.send_modify(|all| all.push(kind.clone()));
    }
    let blocked = watches.then(|| shared.blocked.subscribe());
    Ok(answer.map(|body| forwarded_body(body, kind, blocked)))
}

/// The body of a response; watch events wait while their kind is blocked.
fn forwarded_body(
    body: Body,
    kind: String,
    blocked: Option<watch::Receiver<HashSet<String>>>,
) -> UnsyncBoxBody<Bytes, anyhow::Error> {
    let frames = stream::unfold((body, blocked), move |(mut body, mut blocked)| {
        let kind = kind.clone();
        async move {
            let frame = body.frame().await?;
            if let Some(blocked) = &mut blocked {
                // Fails if the proxy was dropped; then nothing is blocked.
                let _ = blocked.wait_for(|kinds| !kinds.contains(&kind)).await;
            }
            Some((frame, (body, blocked)))
        }
    });
    let frames = frames.map(|frame| Ok(Frame::data(frame?.into_data().unwrap_or_default())));
    StreamBody::new(frames).boxed_unsync()
}

impl ProxyState {
    /// Applies the rule: the response of the proxy, if any; an error closes the connection.
    async fn action(&self, method: &Method, path: &str, done: bool) -> Result<Option<Answer>> {
        let request = ProxiedRequest { method, path, done };
        let action = (self.rule.lock())(&request);
        match action {
            RequestAction::Pass => Ok(None),
            RequestAction::Disconnect => anyhow::bail!("injected disconnect"),
            RequestAction::Refuse(code) => Ok(Some(refusal(code)?)),
            RequestAction::Hold => {
                let mut held = self.held.subscribe();
                self.held.send_modify(|(count, _)| *count += 1);
                held.wait_for(|(_, holds)| !holds).await?;
                Ok(None)
            }
        }
    }
}

fn refusal(code: u16) -> Result<Answer> {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": "Invalid", "message": "injected refusal",
    });
    let body = Full::new(Bytes::from(status.to_string()));
    let body = body.map_err(|never: Infallible| match never {});
    let mut answer = Response::new(body.boxed_unsync());
    *answer.status_mut() = StatusCode::from_u16(code)?;
    Ok(answer)
}
