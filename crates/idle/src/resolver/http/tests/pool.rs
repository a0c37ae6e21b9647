//! Which connections to pods are reused, and which are not.

use std::{
    collections::VecDeque,
    future::poll_fn,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Request, Response, Version};
use http_body_util::Empty;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use neap_kit::clock::Clock;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
    time::advance,
};
use tokio_util::task::TaskTracker;

use crate::resolver::http::{
    pod_connection::PodConnection,
    pool::ConnectionPool,
    request_body::{BufferedBody, RequestBody},
};

/// Longer than any step of these tests takes.
const TEST_TIMEOUT: Duration = Duration::from_mins(2);
const WHOLE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const BEGUN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no";

struct PoolFixture {
    client: ConnectionPool,
    tasks: TaskTracker,
    pod: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl PoolFixture {
    /// A pool, and a pod with one answer for all requests.
    async fn open(answer: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (pod, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
        let connections = Arc::<AtomicUsize>::default();
        let (count, each) = (connections.clone(), tasks.clone());
        tasks.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                each.spawn(async move {
                    let mut asked = [0; 4096];
                    while let Ok(1..) = stream.read(&mut asked).await {
                        stream.write_all(answer).await.unwrap();
                    }
                });
            }
        });
        Self {
            client: ConnectionPool::new(Clock::system(), tasks.clone()),
            tasks,
            pod,
            connections,
        }
    }

    async fn connection(&self) -> PodConnection {
        let connection = self.client.connection(self.pod, Version::HTTP_11);
        let connection = tokio::time::timeout(TEST_TIMEOUT, connection).await;
        connection.expect("no end").unwrap()
    }

    /// A request without a body, as it arrives from a client.
    async fn request(&self) -> Request<RequestBody> {
        let (mut client, server) = tokio::io::duplex(1024);
        let (forward, mut forwarded) = mpsc::channel(1);
        let service = service_fn(move |request: Request<Incoming>| {
            let forward = forward.clone();
            async move {
                forward.send(request).await.unwrap();
                std::future::pending::<()>().await;
                Ok::<_, hyper::Error>(Response::new(Empty::<bytes::Bytes>::new()))
            }
        });
        let serving = http1::Builder::new().serve_connection(TokioIo::new(server), service);
        self.tasks.spawn(async move {
            let _ = serving.await;
        });
        let asked = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        client.write_all(asked).await.unwrap();
        let (head, rest) = forwarded.recv().await.unwrap().into_parts();
        let early = VecDeque::new();
        Request::from_parts(head, RequestBody::new(BufferedBody { early, rest }))
    }

    /// Sends a request and reads the answer; returns whether the connection was new.
    async fn exchange(&self) -> bool {
        let mut connection = self.connection().await;
        let fresh = connection.fresh;
        let answer = connection.send(self.request().await).await.unwrap();
        let (mut body, mut lent) = (answer.into_body(), connection.into_pooled().unwrap());
        while let Some(frame) = poll_fn(|context| lent.poll_frame(&mut body, context)).await {
            frame.unwrap();
        }
        lent.release();
        fresh
    }
}

/// Stops the automatic advance of the paused clock until dropped: tokio does not advance it while a
/// blocking task runs.
fn freeze_clock() -> mpsc::Sender<()> {
    let (busy, mut over) = mpsc::channel(1);
    tokio::task::spawn_blocking(move || over.blocking_recv());
    busy
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_reused_unless_it_was_idle_for_too_long() {
    let _time = freeze_clock();
    let fixture = PoolFixture::open(WHOLE).await;
    assert!(fixture.exchange().await);
    assert!(!fixture.exchange().await);
    advance(Duration::from_millis(1400)).await;
    assert!(!fixture.exchange().await, "it is still good");
    advance(Duration::from_millis(1600)).await;
    assert!(fixture.exchange().await, "the pod may be about to close it");
    assert_eq!(fixture.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_last_answer_does_not_end_is_given_up_soon() {
    let _time = freeze_clock();
    let fixture = PoolFixture::open(BEGUN).await;
    let mut first = fixture.connection().await;
    // It returns to the pool although its answer is not read completely.
    let answer = first.send(fixture.request().await).await.unwrap();
    first.into_pooled().unwrap().release();
    let (client, pod) = (fixture.client.clone(), fixture.pod);
    let asking = async move { client.connection(pod, Version::HTTP_11).await.unwrap() };
    let asking = fixture.tasks.spawn(asking);
    // It begins to wait.
    tokio::task::yield_now().await;
    advance(Duration::from_millis(900)).await;
    assert!(!asking.is_finished(), "the answer may end any moment");
    advance(Duration::from_millis(200)).await;
    let second = tokio::time::timeout(TEST_TIMEOUT, asking).await;
    assert!(second.expect("it waits for ever").unwrap().fresh);
    drop(answer);
}

#[tokio::test(start_paused = true)]
async fn the_idle_connections_of_a_pod_are_limited() {
    let _time = freeze_clock();
    let fixture = PoolFixture::open(WHOLE).await;
    let mut lent = Vec::new();
    for _ in 0..300 {
        lent.push(fixture.connection().await);
    }
    for connection in lent {
        connection.into_pooled().unwrap().release();
    }
    let mut kept = Vec::new();
    loop {
        let next = fixture.connection().await;
        if next.fresh {
            break;
        }
        kept.push(next);
    }
    assert_eq!(kept.len(), 256);
}

#[tokio::test(start_paused = true)]
async fn no_connection_is_pooled_for_removed_pods_or_after_the_close() {
    let _time = freeze_clock();
    let fixture = PoolFixture::open(WHOLE).await;
    assert!(fixture.exchange().await);
    fixture.client.retain(|pod| *pod == fixture.pod);
    assert!(!fixture.exchange().await);
    fixture.client.retain(|_| false);
    assert!(fixture.exchange().await, "the pod was gone");
    fixture.client.close();
    assert!(fixture.exchange().await);
    assert!(
        fixture.exchange().await,
        "no connection returns to the pool"
    );
}
