//! The pod behind every proxy.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use memchr::memmem;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinSet,
};
use tokio_util::task::TaskTracker;

use crate::stopwatch::Stopwatch;

/// Bytes of the response to `/large`.
pub(super) const LARGE: u64 = 1 << 30;
const PIECE: usize = 64 << 10;
const HEAD: usize = 4 << 10;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 128\r\n\r\n\
    0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n\
    0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n";
/// Knative's activator sends this probe before it uses a pod.
const PROBE: &[u8] = b"K-Network-Probe: queue";
const PROBED: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nqueue";

/// Listens until it is dropped.
#[derive(Debug)]
pub(super) struct Pod {
    /// Answers every request over HTTP/1.1.
    pub(super) http: SocketAddr,
    /// Echoes what it receives.
    pub(super) echo: SocketAddr,
    /// Sends without end.
    pub(super) source: SocketAddr,
    /// When requests arrived.
    pub(super) heard: Arc<ArrivalTimes>,
    _listening: JoinSet<()>,
}

/// The times at which the first byte of each request arrived, while they are recorded.
#[derive(Debug)]
pub(super) struct ArrivalTimes {
    noting: AtomicBool,
    watch: Stopwatch,
    moments: Mutex<Vec<Duration>>,
    more: Notify,
}

impl ArrivalTimes {
    /// The current time on the same clock.
    pub(super) fn now(&self) -> Duration {
        self.watch.elapsed()
    }

    /// Clears the recorded times and starts recording.
    pub(super) fn note_from_now(&self) {
        self.moments.lock().clear();
        self.noting.store(true, Ordering::SeqCst);
    }

    /// Resolves to the times once there are `count`.
    pub(super) async fn moments(&self, count: usize) -> Vec<Duration> {
        loop {
            let more = self.more.notified();
            if self.moments.lock().len() >= count {
                self.noting.store(false, Ordering::SeqCst);
                return std::mem::take(&mut *self.moments.lock());
            }
            more.await;
        }
    }

    fn note(&self) {
        if self.noting.load(Ordering::Relaxed) {
            self.moments.lock().push(self.now());
            self.more.notify_one();
        }
    }
}

impl Pod {
    pub(super) fn start() -> Result<Self> {
        let heard = Arc::new(ArrivalTimes {
            noting: AtomicBool::new(false),
            watch: Stopwatch::start(),
            moments: Mutex::default(),
            more: Notify::new(),
        });
        let mut listening = JoinSet::new();
        let noted = heard.clone();
        let http = listen(&mut listening, move |stream| answer(stream, noted.clone()))?;
        let echo = listen(&mut listening, echo)?;
        let source = listen(&mut listening, send_forever)?;
        Ok(Self {
            http,
            echo,
            source,
            heard,
            _listening: listening,
        })
    }
}

fn listen<F>(
    listening: &mut JoinSet<()>,
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> Result<SocketAddr>
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let listener: TcpListener = socket.listen(4096)?;
    let address = listener.local_addr()?;
    listening.spawn(async move {
        let connections = TaskTracker::new();
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            // The other end of a connection reports how it ends.
            connections.spawn(serve(stream));
        }
    });
    Ok(address)
}

async fn answer(mut stream: TcpStream, heard: Arc<ArrivalTimes>) -> io::Result<()> {
    let (mut buffer, mut filled) = (vec![0; HEAD], 0);
    loop {
        let read = stream.read(&mut buffer[filled..]).await?;
        if read == 0 {
            return Ok(());
        }
        if filled == 0 {
            heard.note();
        }
        filled += read;
        let head = &buffer[..filled];
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let line = &head[..head.iter().position(|byte| *byte == b'\r').unwrap_or(0)];
        if memmem::find(line, b"/large ").is_some() {
            large(&mut stream).await?;
        } else if memmem::find(head, PROBE).is_some() {
            stream.write_all(PROBED).await?;
        } else {
            stream.write_all(ANSWER).await?;
        }
        filled = 0;
    }
}

async fn large(stream: &mut TcpStream) -> io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LARGE}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let piece = vec![b'x'; PIECE];
    for _ in 0..LARGE / PIECE as u64 {
        stream.write_all(&piece).await?;
    }
    Ok(())
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 1 << 10];
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..read]).await?;
    }
}

async fn send_forever(mut stream: TcpStream) -> io::Result<()> {
    let piece = vec![b'x'; PIECE];
    loop {
        stream.write_all(&piece).await?;
    }
}
