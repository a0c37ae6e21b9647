//! What lies between controllers and their server: requests pass it, or do not.

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

/// A request that passes, before the server has it or after it has answered.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    /// Whether it is done already, and only its answer is left.
    pub(crate) done: bool,
}

impl Asked<'_> {
    /// Whether an object of this kind is to be made, and is not yet.
    pub(crate) fn makes(&self, kind: &str) -> bool {
        !self.done && self.made(kind)
    }

    /// Whether one was made, and nobody has been told.
    pub(crate) fn has_made(&self, kind: &str) -> bool {
        self.done && self.made(kind)
    }

    pub(crate) fn is_a_write(&self) -> bool {
        self.method != Method::GET
    }

    fn made(&self, kind: &str) -> bool {
        self.method == Method::POST && self.path.ends_with(&format!("/{kind}"))
    }
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    /// Answered so, by nobody.
    Refuse(u16),
    /// Never answered: the connection ends.
    Vanish,
    /// Kept until all that is kept may go on.
    Keep,
}

type Rule = Box<dyn FnMut(&Asked<'_>) -> Fate + Send>;
type Answer = Response<UnsyncBoxBody<Bytes, anyhow::Error>>;

/// A way to the server that can be closed, slowed and listened at.
pub(crate) struct Relay {
    pub(crate) url: String,
    shared: Arc<Shared>,
    _task: JoinSet<()>,
}

struct Shared {
    server: Client,
    rule: Mutex<Rule>,
    /// Kinds whose watches tell nothing.
    deaf: watch::Sender<HashSet<String>>,
    /// Kinds that are watched, since the last that was deafened.
    watched: watch::Sender<Vec<String>>,
    /// Paths that were read, since then.
    read: watch::Sender<Vec<String>>,
    /// How many requests are kept, and whether they are.
    kept: watch::Sender<(usize, bool)>,
    /// Writes that were done: method and path.
    done: Mutex<Vec<(Method, String)>>,
}

impl Relay {
    pub(crate) async fn open(server: Client) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            server,
            rule: Mutex::new(Box::new(|_| Fate::Pass)),
            deaf: watch::Sender::default(),
            watched: watch::Sender::default(),
            read: watch::Sender::default(),
            kept: watch::Sender::new((0, true)),
            done: Mutex::default(),
        });
        let mut task = JoinSet::new();
        task.spawn(serve(listener, shared.clone()));
        Self {
            url,
            shared,
            _task: task,
        }
    }

    /// From now on this says what becomes of requests.
    pub(crate) fn rule(&self, rule: impl FnMut(&Asked<'_>) -> Fate + Send + 'static) {
        *self.shared.rule.lock() = Box::new(rule);
    }

    /// Watches of this kind tell nothing until they are heard again.
    pub(crate) fn deafen(&self, kind: &str) {
        self.shared.watched.send_modify(Vec::clear);
        self.shared.read.send_modify(Vec::clear);
        self.shared.deaf.send_modify(|deaf| {
            deaf.insert(kind.to_owned());
        });
    }

    pub(crate) fn hear(&self) {
        self.shared.deaf.send_modify(HashSet::clear);
    }

    /// Resolves once somebody watches this kind, and knows what there was before.
    pub(crate) async fn follows(&self, kind: &str) {
        let mut watched = self.shared.watched.subscribe();
        let watched = watched.wait_for(|watched| watched.iter().any(|other| other == kind));
        watched.await.unwrap();
    }

    /// Resolves once somebody reads the object at a path that ends so.
    pub(crate) async fn reads(&self, path: &str) {
        let mut read = self.shared.read.subscribe();
        let read = read.wait_for(|read| read.iter().any(|other| other.ends_with(path)));
        read.await.unwrap();
    }

    /// Resolves once the object at such a path was read twice from now on. The first may be of a look
    /// that had begun before; with the second all that came of that one is done.
    pub(crate) async fn looks_again(&self, path: &str) {
        let count = |read: &Vec<String>| read.iter().filter(|other| other.ends_with(path)).count();
        let mut read = self.shared.read.subscribe();
        let before = count(&read.borrow());
        let again = read.wait_for(|read| count(read) >= before + 2);
        again.await.unwrap();
    }

    /// Resolves once a request is kept.
    pub(crate) async fn keeps(&self) {
        let mut kept = self.shared.kept.subscribe();
        kept.wait_for(|(count, _)| *count > 0).await.unwrap();
    }

    /// Lets go on what is kept.
    pub(crate) fn release(&self) {
        self.shared.kept.send_modify(|(_, keeps)| *keeps = false);
    }

    /// How many objects of a kind were made through it.
    pub(crate) fn made(&self, kind: &str) -> usize {
        let done = self.shared.done.lock();
        let made = done
            .iter()
            .filter(|(method, path)| method == Method::POST && path.ends_with(&format!("/{kind}")));
        made.count()
    }

    /// How many writes were done through it; renewals of a lease aside.
    pub(crate) fn writes(&self) -> usize {
        let done = self.shared.done.lock();
        let of_work = done.iter().filter(|(_, path)| !path.contains("/leases"));
        of_work.count()
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(connected(stream, shared.clone()));
    }
}

async fn connected(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(|request| pass(request, shared.clone()));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A client that leaves, or is left, is what this is about.
    let _ = connection.await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "controllers of ours ask for little"
)]
async fn pass(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Answer> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
    if let Some(refusal) = shared.fate(&method, &path, false).await? {
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
        shared.done.lock().push((method.clone(), path.clone()));
        if let Some(refusal) = shared.fate(&method, &path, true).await? {
            return Ok(refusal);
        }
    }
    let kind = path.rsplit('/').next().unwrap_or_default().to_owned();
    if watches {
        shared.watched.send_modify(|all| all.push(kind.clone()));
    }
    let deaf = watches.then(|| shared.deaf.subscribe());
    Ok(answer.map(|body| heard(body, kind, deaf)))
}

/// What a server says, while nobody is deaf to it.
fn heard(
    body: Body,
    kind: String,
    deaf: Option<watch::Receiver<HashSet<String>>>,
) -> UnsyncBoxBody<Bytes, anyhow::Error> {
    let frames = stream::unfold((body, deaf), move |(mut body, mut deaf)| {
        let kind = kind.clone();
        async move {
            let frame = body.frame().await?;
            if let Some(deaf) = &mut deaf {
                // Whoever opened the relay may have gone; then nobody is deaf any longer.
                let _ = deaf.wait_for(|kinds| !kinds.contains(&kind)).await;
            }
            Some((frame, (body, deaf)))
        }
    });
    let frames = frames.map(|frame| Ok(Frame::data(frame?.into_data().unwrap_or_default())));
    StreamBody::new(frames).boxed_unsync()
}

impl Shared {
    /// What is answered instead, if so; an error ends the connection.
    async fn fate(&self, method: &Method, path: &str, done: bool) -> Result<Option<Answer>> {
        let asked = Asked { method, path, done };
        let fate = (self.rule.lock())(&asked);
        match fate {
            Fate::Pass => Ok(None),
            Fate::Vanish => anyhow::bail!("nobody answers"),
            Fate::Refuse(code) => Ok(Some(refusal(code)?)),
            Fate::Keep => {
                let mut kept = self.kept.subscribe();
                self.kept.send_modify(|(count, _)| *count += 1);
                kept.wait_for(|(_, keeps)| !keeps).await?;
                Ok(None)
            }
        }
    }
}

fn refusal(code: u16) -> Result<Answer> {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": "Invalid", "message": "the relay says no",
    });
    let body = Full::new(Bytes::from(status.to_string()));
    let body = body.map_err(|never: Infallible| match never {});
    let mut answer = Response::new(body.boxed_unsync());
    *answer.status_mut() = StatusCode::from_u16(code)?;
    Ok(answer)
}
