//! Crowds of clients: idle, slow, watching without reading, and listing.

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

/// Connections that are opened concurrently.
const CONCURRENT_CONNECTS: usize = 64;

/// Connections without any request after the handshake.
pub(crate) async fn idle(client: &Client, count: usize) -> Result<Vec<Stream>> {
    let mut idle = Vec::with_capacity(count);
    let mut connecting = JoinSet::new();
    for number in 0..count {
        let client = client.clone();
        connecting.spawn(async move { client.raw().await });
        if number >= CONCURRENT_CONNECTS {
            idle.push(connecting.join_next().await.context("none")???);
        }
    }
    while let Some(connected) = connecting.join_next().await {
        idle.push(connected??);
    }
    Ok(idle)
}

/// The number of connections that the server has closed.
pub(crate) fn closed(streams: &[Stream]) -> usize {
    // Data that the server sent after the handshake precedes the end of the stream.
    let is_closed = |stream: &&Stream| {
        let mut buffer = [0; 4096];
        loop {
            match stream.get_ref().0.try_read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    };
    streams.iter().filter(is_closed).count()
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
                // The server may refuse the request before the body is sent.
                if stream.write_all(&body).await.is_err() {
                    break;
                }
            }
        }
        // Fails if the server has refused the request.
        let _ = stream.flush().await;
    }
    Ok(streams)
}

/// Watchers with many pending events that never read.
pub(crate) async fn stalled_watchers(client: &Client, count: usize) -> Result<Vec<Stream>> {
    let path = Resource::ConfigMaps.collection();
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = client.narrow().await?;
        send_get(client, &mut stream, &format!("{path}?watch=1")).await?;
        streams.push(stream);
    }
    // More data than the socket buffers of each connection hold.
    let mut connection = client.connect().await?;
    let large = Resource::ConfigMaps.object("large", 0, 200_000);
    // Fails with 409 if this is not the first crowd, which is no error here.
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

async fn send_get(client: &Client, stream: &mut Stream, path: &str) -> Result<()> {
    let authorization = client.authorization();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    Ok(stream.flush().await?)
}

/// Clients that list all objects repeatedly.
pub(crate) struct ListingClients {
    shared: Arc<Progress>,
    seen: watch::Receiver<usize>,
    clients: JoinSet<Result<()>>,
    count: usize,
}

struct Progress {
    /// The number of clients that have received a whole list.
    served: watch::Sender<usize>,
    shortest: AtomicUsize,
}

impl ListingClients {
    /// Returns once all clients have sent their first request.
    pub(crate) async fn gather(client: &Client, path: &str, count: usize) -> Result<Self> {
        let (served, seen) = watch::channel(0);
        let shared = Arc::new(Progress {
            served,
            shortest: AtomicUsize::new(usize::MAX),
        });
        let mut streams = idle(client, count).await?;
        for stream in &mut streams {
            send_get(client, stream, path).await?;
        }
        let mut clients = JoinSet::new();
        for stream in streams {
            let (client, path) = (client.clone(), path.to_owned());
            clients.spawn(list_repeatedly(client, stream, path, shared.clone()));
        }
        Ok(Self {
            shared,
            seen,
            clients,
            count,
        })
    }

    /// Waits until each client has received a whole list; returns the length of the shortest.
    pub(crate) async fn all_served(&mut self) -> Result<usize> {
        tokio::select! {
            served = self.seen.wait_for(|served| *served >= self.count) => drop(served?),
            ended = self.clients.join_next() => ended.context("there are none")???,
        }
        Ok(self.shared.shortest.load(Ordering::Relaxed))
    }
}

async fn list_repeatedly(
    client: Client,
    mut stream: Stream,
    path: String,
    shared: Arc<Progress>,
) -> Result<()> {
    let mut first = true;
    loop {
        let length = read_response(&mut stream).await?;
        shared.shortest.fetch_min(length, Ordering::Relaxed);
        if std::mem::take(&mut first) {
            shared.served.send_modify(|served| *served += 1);
        }
        send_get(&client, &mut stream, &path).await?;
    }
}

/// Reads one chunked response to its end, and returns its length.
async fn read_response(stream: &mut Stream) -> Result<usize> {
    let mut buffer = vec![0; 16 << 10];
    let (mut length, mut end) = (0, [0; 5]);
    loop {
        let read = stream.read(&mut buffer).await?;
        ensure!(
            read > 0,
            "the server closed the connection in the middle of a list"
        );
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
