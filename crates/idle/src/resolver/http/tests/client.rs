//! Which connections to pods are used again, and which are not.

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
    client::Client,
    connection::Connection,
    sent::{Held, Sent},
};

/// Nothing here takes longer unless it is stuck.
const STUCK: Duration = Duration::from_mins(2);
const WHOLE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const BEGUN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no";

struct Place {
    client: Client,
    tasks: TaskTracker,
    pod: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Place {
    /// A client, and a pod that says the same to whatever it is asked.
    async fn open(says: &'static [u8]) -> Self {
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
                        stream.write_all(says).await.unwrap();
                    }
                });
            }
        });
        Self {
            client: Client::new(Clock::system(), tasks.clone()),
            tasks,
            pod,
            connections,
        }
    }

    async fn connection(&self) -> Connection {
        let connection = self.client.connection(self.pod, Version::HTTP_11);
        let connection = tokio::time::timeout(STUCK, connection).await;
        connection.expect("no end").unwrap()
    }

    /// A request with nothing in it, as it comes from a client.
    async fn request(&self) -> Request<Sent> {
        let (mut client, server) = tokio::io::duplex(1024);
        let (tell, mut told) = mpsc::channel(1);
        let service = service_fn(move |request: Request<Incoming>| {
            let tell = tell.clone();
            async move {
                tell.send(request).await.unwrap();
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
        let (head, rest) = told.recv().await.unwrap().into_parts();
        let early = VecDeque::new();
        Request::from_parts(head, Sent::new(Held { early, rest }))
    }

    /// Asks something over a connection, and reads the answer.
    async fn ask(&self) -> bool {
        let mut connection = self.connection().await;
        let fresh = connection.fresh;
        let answer = connection.send(self.request().await).await.unwrap();
        let (mut body, mut lent) = (answer.into_body(), connection.lent().unwrap());
        while let Some(frame) = poll_fn(|context| lent.poll_frame(&mut body, context)).await {
            frame.unwrap();
        }
        lent.answered();
        fresh
    }
}

/// Time passes only as it is told to until this is dropped: as long as a thread is busy, it does not
/// run ahead while sockets are waited for.
fn standing_still() -> mpsc::Sender<()> {
    let (busy, mut over) = mpsc::channel(1);
    tokio::task::spawn_blocking(move || over.blocking_recv());
    busy
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_used_again_unless_nobody_used_it_for_a_while() {
    let _time = standing_still();
    let place = Place::open(WHOLE).await;
    assert!(place.ask().await);
    assert!(!place.ask().await);
    advance(Duration::from_millis(1400)).await;
    assert!(!place.ask().await, "it is still good");
    advance(Duration::from_millis(1600)).await;
    assert!(place.ask().await, "the pod may be about to close it");
    assert_eq!(place.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_last_answer_does_not_end_is_not_waited_for_long() {
    let _time = standing_still();
    let place = Place::open(BEGUN).await;
    let mut first = place.connection().await;
    // It goes back although somebody still reads.
    let answer = first.send(place.request().await).await.unwrap();
    first.lent().unwrap().answered();
    let (client, pod) = (place.client.clone(), place.pod);
    let asking = async move { client.connection(pod, Version::HTTP_11).await.unwrap() };
    let asking = place.tasks.spawn(asking);
    // It begins to wait.
    tokio::task::yield_now().await;
    advance(Duration::from_millis(900)).await;
    assert!(!asking.is_finished(), "the answer may end any moment");
    advance(Duration::from_millis(200)).await;
    let second = tokio::time::timeout(STUCK, asking).await;
    assert!(second.expect("it waits for ever").unwrap().fresh);
    drop(answer);
}

#[tokio::test(start_paused = true)]
async fn no_more_are_kept_for_a_pod_than_anybody_needs() {
    let _time = standing_still();
    let place = Place::open(WHOLE).await;
    let mut lent = Vec::new();
    for _ in 0..300 {
        lent.push(place.connection().await);
    }
    for connection in lent {
        connection.lent().unwrap().answered();
    }
    let mut kept = Vec::new();
    loop {
        let next = place.connection().await;
        if next.fresh {
            break;
        }
        kept.push(next);
    }
    assert_eq!(kept.len(), 256);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_for_pods_that_are_gone_or_after_the_end() {
    let _time = standing_still();
    let place = Place::open(WHOLE).await;
    assert!(place.ask().await);
    place.client.retain(|pod| *pod == place.pod);
    assert!(!place.ask().await);
    place.client.retain(|_| false);
    assert!(place.ask().await, "the pod was gone");
    place.client.close();
    assert!(place.ask().await);
    assert!(place.ask().await, "nothing goes back any longer");
}
