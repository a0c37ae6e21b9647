//! A watch that counts events and does nothing else, so that a thousand of them cost little
//! compared with the measured server.

use anyhow::{Context, Result, bail, ensure};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use crate::client::{Client, Http2Connection};

/// Room for the events that arrive together.
const BUFFER: usize = 4 << 10;

#[derive(Debug)]
pub enum EventCounter {
    /// On its own connection.
    Own(Box<RawWatch>),
    /// With others on an HTTP/2 connection.
    Shared(Incoming),
}

impl EventCounter {
    /// Opens a watch on its own connection; returns once the server has accepted it.
    pub async fn on_own_connection(client: &Client, path: &str) -> Result<Self> {
        Ok(Self::Own(Box::new(RawWatch::open(client, path).await?)))
    }

    /// The same on a shared connection.
    pub async fn on_shared_connection(connection: &Http2Connection, path: &str) -> Result<Self> {
        let answer = connection.get(path).await?;
        ensure!(answer.status() == 200, "refused: {}", answer.status());
        Ok(Self::Shared(answer.into_body()))
    }

    /// Waits for events, and returns how many have come; at least one.
    pub async fn events(&mut self) -> Result<usize> {
        let body = match self {
            Self::Own(watch) => return watch.events().await,
            Self::Shared(body) => body,
        };
        loop {
            let frame = body.frame().await.context("the watch ended")??;
            let data = frame.into_data().unwrap_or_default();
            let events = memchr::memchr_iter(b'\n', &data).count();
            if events > 0 {
                return Ok(events);
            }
        }
    }
}

/// A watch read directly from the socket.
#[derive(Debug)]
pub struct RawWatch {
    stream: TlsStream<TcpStream>,
    buffer: Box<[u8]>,
    /// The last byte that was read.
    last: u8,
    /// Events that came together with the headers.
    early: usize,
}

impl RawWatch {
    async fn open(client: &Client, path: &str) -> Result<Self> {
        let mut stream = client.raw().await?;
        let authorization = client.authorization();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let mut watcher = Self {
            stream,
            buffer: vec![0; BUFFER].into(),
            last: 0,
            early: 0,
        };
        watcher.read_head().await?;
        Ok(watcher)
    }

    async fn read_head(&mut self) -> Result<()> {
        let mut head = Vec::new();
        loop {
            let read = self.stream.read(&mut self.buffer).await?;
            ensure!(read > 0, "hung up on before it was answered");
            head.extend_from_slice(&self.buffer[..read]);
            let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") else {
                continue;
            };
            if !head.starts_with(b"HTTP/1.1 200") {
                bail!("refused: {}", String::from_utf8_lossy(&head));
            }
            self.early = self.count(&head[end + 4..]);
            return Ok(());
        }
    }

    async fn events(&mut self) -> Result<usize> {
        if self.early > 0 {
            return Ok(std::mem::take(&mut self.early));
        }
        loop {
            let read = self.stream.read(&mut self.buffer).await;
            let read = read.context("the watch broke")?;
            ensure!(read > 0, "the watch ended");
            let buffer = std::mem::take(&mut self.buffer);
            let events = self.count(&buffer[..read]);
            self.buffer = buffer;
            if events > 0 {
                return Ok(events);
            }
        }
    }

    /// Each event ends in a line feed; those of the chunked encoding follow a carriage return.
    fn count(&mut self, bytes: &[u8]) -> usize {
        let mut events = 0;
        for &byte in bytes {
            events += usize::from(byte == b'\n' && self.last != b'\r');
            self.last = byte;
        }
        events
    }
}
