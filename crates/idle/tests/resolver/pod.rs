//! Pods as HTTP servers of the test.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full, StreamBody, combinators::BoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Mutex, mpsc},
};
use tokio_util::task::TaskTracker;

pub(crate) type Body = BoxBody<Bytes, hyper::Error>;

/// A pod that speaks HTTP/1 and HTTP/2.
#[derive(Clone)]
pub(crate) struct Pod {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) requests: Arc<AtomicUsize>,
    /// The source of `/events`.
    pub(crate) events: mpsc::Sender<&'static str>,
}

type Events = Arc<Mutex<mpsc::Receiver<&'static str>>>;

impl Pod {
    pub(crate) async fn new(tasks: &TaskTracker) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, tasks)
    }

    pub(crate) fn on(listener: TcpListener, tasks: &TaskTracker) -> Self {
        let (events, told) = mpsc::channel(16);
        let pod = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            requests: Arc::default(),
            events,
        };
        let told: Events = Arc::new(Mutex::new(told));
        let (kept, all) = (pod.clone(), tasks.clone());
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                kept.connections.fetch_add(1, Ordering::SeqCst);
                all.spawn(kept.clone().serve(stream, told.clone()));
            }
        });
        pod
    }

    /// Serves a connection that another listener accepted.
    pub(crate) async fn serve_accepted(&self, stream: TcpStream) {
        let (_, told) = mpsc::channel(1);
        self.connections.fetch_add(1, Ordering::SeqCst);
        self.clone().serve(stream, Arc::new(Mutex::new(told))).await;
    }

    async fn serve(self, stream: TcpStream, events: Events) {
        let service = service_fn(move |request| {
            self.requests.fetch_add(1, Ordering::SeqCst);
            let answer = answer(request, events.clone());
            async move { Ok::<_, Infallible>(answer) }
        });
        let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
        let stream = TokioIo::new(stream);
        let _ = server.serve_connection_with_upgrades(stream, service).await;
    }
}

fn answer(request: Request<Incoming>, events: Events) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let (head, body) = request.into_parts();
    let (status, body) = match path.as_str() {
        // Streams the body back, with its trailers.
        "/echo" => (StatusCode::OK, body.boxed()),
        "/trailers" => {
            let trailers = HeaderMap::from_iter([(
                "grpc-status".parse().unwrap(),
                HeaderValue::from_static("0"),
            )]);
            let frames = [
                Ok(Frame::data(Bytes::from_static(b"hello"))),
                Ok(Frame::trailers(trailers)),
            ];
            (
                StatusCode::OK,
                BoxBody::new(StreamBody::new(stream::iter(frames))),
            )
        }
        "/events" => {
            let events = stream::unfold(events, |events| async move {
                let event = events.lock().await.recv().await?;
                Some((
                    Ok(Frame::data(Bytes::from_static(event.as_bytes()))),
                    events,
                ))
            });
            (StatusCode::OK, BoxBody::new(StreamBody::new(events)))
        }
        "/empty" => (StatusCode::NO_CONTENT, none()),
        "/head" => (
            StatusCode::OK,
            text(format!("{:?} {:?}", head.version, head.headers)),
        ),
        "/silent" => (
            StatusCode::OK,
            BoxBody::new(StreamBody::new(stream::pending())),
        ),
        _ => (StatusCode::OK, text("hello".to_owned())),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

fn text(text: String) -> Body {
    BoxBody::new(Full::new(Bytes::from(text)).map_err(|never| match never {}))
}

fn none() -> Body {
    BoxBody::new(Empty::new().map_err(|never| match never {}))
}
