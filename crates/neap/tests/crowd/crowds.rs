//! The crowds.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, Result, ensure};
use http::Method;
use neap_load::{
    client::Client,
    objects::{self, Resource},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
    task::JoinSet,
};
use tokio_rustls::client::TlsStream;

type Stream = TlsStream<TcpStream>;

/// So many connect at the same time.
const TOGETHER: usize = 64;

/// Connections on which nothing was said after the handshake.
pub(crate) async fn idle(client: &Client, count: usize) -> Result<Vec<Stream>> {
    let mut idle = Vec::with_capacity(count);
    let mut connecting = JoinSet::new();
    for number in 0..count {
        let client = client.clone();
        connecting.spawn(async move { client.raw().await });
        if number >= TOGETHER {
            idle.push(connecting.join_next().await.context("none")???);
        }
    }
    while let Some(connected) = connecting.join_next().await {
        idle.push(connected??);
    }
    Ok(idle)
}

/// How many of them the server has left.
pub(crate) fn left(streams: &[Stream]) -> usize {
    // What it sent after the handshake is still there to be read, before the end if it has left.
    let is_left = |stream: &&Stream| {
        let mut buffer = [0; 4096];
        loop {
            match stream.get_ref().0.try_read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    };
    streams.iter().filter(is_left).count()
}

/// Clients that stop in the middle of the headers, and clients that stop in the middle of a body.
pub(crate) async fn slow(client: &Client, count: usize) -> Result<Vec<Stream>> {
    let mut streams = idle(client, 2 * count).await?;
    let path = Resource::ConfigMaps.collection();
    let authorization = client.authorization();
    let begun = format!("POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n");
    let body = vec![b' '; 64 << 10];
    for (number, stream) in streams.iter_mut().enumerate() {
        stream.write_all(begun.as_bytes()).await?;
        if number % 2 == 0 {
            stream.write_all(b"Content-Length: 3000000\r\n\r\n").await?;
            for _ in 0..32 {
                // Some are refused before they have sent it, which is as good.
                if stream.write_all(&body).await.is_err() {
                    break;
                }
            }
        }
        // As above.
        let _ = stream.flush().await;
    }
    Ok(streams)
}

/// Watchers that were sent a lot and never read any of it.
pub(crate) async fn deaf_watchers(client: &Client, count: usize) -> Result<Vec<Stream>> {
    let path = Resource::ConfigMaps.collection();
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = client.narrow().await?;
        ask(client, &mut stream, &format!("{path}?watch=1")).await?;
        streams.push(stream);
    }
    // More than what is kept for each in buffers of the system.
    let mut connection = client.connect().await?;
    let large = Resource::ConfigMaps.object("large", 0, 200_000);
    // It is there already if this is not the first crowd.
    objects::create(&mut connection, Resource::ConfigMaps, &large).await?;
    for number in 1..60 {
        let body = Resource::ConfigMaps.patch(number).to_string();
        let path = Resource::ConfigMaps.path("large");
        let merge = "application/merge-patch+json";
        let changed = connection.send_as(Method::PATCH, &path, merge, body);
        changed.await?.success()?;
    }
    Ok(streams)
}

async fn ask(client: &Client, stream: &mut Stream, path: &str) -> Result<()> {
    let authorization = client.authorization();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    Ok(stream.flush().await?)
}

/// Clients that list everything, again and again.
pub(crate) struct Greedy {
    shared: Arc<Shared>,
    seen: watch::Receiver<usize>,
    clients: JoinSet<Result<()>>,
    count: usize,
}

struct Shared {
    /// Clients that have had a whole list.
    fed: watch::Sender<usize>,
    shortest: AtomicUsize,
}

impl Greedy {
    /// Returns once all of them have asked.
    pub(crate) async fn gather(client: &Client, path: &str, count: usize) -> Result<Self> {
        let (fed, seen) = watch::channel(0);
        let shared = Arc::new(Shared {
            fed,
            shortest: AtomicUsize::new(usize::MAX),
        });
        let mut streams = idle(client, count).await?;
        for stream in &mut streams {
            ask(client, stream, path).await?;
        }
        let mut clients = JoinSet::new();
        for stream in streams {
            let (client, path) = (client.clone(), path.to_owned());
            clients.spawn(eat(client, stream, path, shared.clone()));
        }
        Ok(Self {
            shared,
            seen,
            clients,
            count,
        })
    }

    /// Returns once each has had a whole list, with the length of the shortest.
    pub(crate) async fn all_have_one(&mut self) -> Result<usize> {
        tokio::select! {
            fed = self.seen.wait_for(|fed| *fed >= self.count) => drop(fed?),
            ended = self.clients.join_next() => ended.context("there are none")???,
        }
        Ok(self.shared.shortest.load(Ordering::Relaxed))
    }
}

async fn eat(client: Client, mut stream: Stream, path: String, shared: Arc<Shared>) -> Result<()> {
    let mut first = true;
    loop {
        let length = whole(&mut stream).await?;
        shared.shortest.fetch_min(length, Ordering::Relaxed);
        if std::mem::take(&mut first) {
            shared.fed.send_modify(|fed| *fed += 1);
        }
        ask(&client, &mut stream, &path).await?;
    }
}

/// Reads one answer in chunks to its end, and returns how long it was.
async fn whole(stream: &mut Stream) -> Result<usize> {
    let mut buffer = vec![0; 16 << 10];
    let (mut length, mut end) = (0, [0; 5]);
    loop {
        let read = stream.read(&mut buffer).await?;
        ensure!(read > 0, "hung up on in the middle of a list");
        ensure!(
            length > 0 || buffer.starts_with(b"HTTP/1.1 200"),
            "a list was refused: {}",
            String::from_utf8_lossy(&buffer[..read])
        );
        length += read;
        let kept = read.min(end.len());
        end.rotate_left(kept);
        let at = end.len() - kept;
        end[at..].copy_from_slice(&buffer[read - kept..read]);
        if &end == b"0\r\n\r\n" {
            return Ok(length);
        }
    }
}
