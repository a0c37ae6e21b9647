//! Clients: the same for a pod and for each proxy in front of it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Semaphore,
    task::JoinSet,
    time::sleep,
};

use crate::stopwatch::Stopwatch;

/// Contains what each proxy routes by; the others pass it on.
pub(super) const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: web.bench\r\nUser-Agent: neap-load\r\n\
    Accept: */*\r\nKnative-Serving-Namespace: bench\r\nKnative-Serving-Revision: web\r\n\r\n";
const LARGE: &[u8] = b"GET /large HTTP/1.1\r\nHost: web.bench\r\n\r\n";
const WORD: &[u8; 64] = &[b'w'; 64];
const BUFFER: usize = 4 << 10;

/// A connection with one request in flight at a time.
#[derive(Debug)]
pub(super) struct HttpClient {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl HttpClient {
    pub(super) async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let buffer = Vec::new();
        Ok(Self { stream, buffer })
    }

    /// Sends a request, and reads the complete response.
    pub(super) async fn request(&mut self) -> Result<()> {
        self.send().await?;
        self.receive().await
    }

    pub(super) async fn send(&mut self) -> Result<()> {
        Ok(self.stream.write_all(REQUEST).await?)
    }

    pub(super) async fn receive(&mut self) -> Result<()> {
        self.buffer.resize(BUFFER, 0);
        let mut filled = 0;
        loop {
            let read = self.stream.read(&mut self.buffer[filled..]).await?;
            ensure!(read > 0, "hung up on before the answer");
            filled += read;
            if let Some(whole) = length(&self.buffer[..filled])?
                && filled >= whole
            {
                return Ok(());
            }
        }
    }
}

/// The length of a response including its head, as soon as the head is complete. It must be a
/// success.
fn length(read: &[u8]) -> Result<Option<usize>> {
    let Some(end) = memmem::find(read, b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = &read[..end];
    if !head.starts_with(b"HTTP/1.1 200") {
        bail!("answered {}", String::from_utf8_lossy(read));
    }
    let mut lines = head.split(|byte| *byte == b'\n');
    let length = lines.find_map(|line| {
        let (name, value) = line.split_at_checked(15)?;
        let found = name.eq_ignore_ascii_case(b"content-length:");
        let value = std::str::from_utf8(value).ok()?.trim();
        found.then(|| value.parse::<usize>().ok())?
    });
    Ok(Some(
        end + 4 + length.context("an answer without a length")?,
    ))
}

/// Sends requests over `connections` connections, one after another, for `time`. Returns the number
/// of responses.
pub(super) async fn request_continuously(
    address: SocketAddr,
    connections: usize,
    time: Duration,
) -> Result<usize> {
    let mut asking = JoinSet::new();
    for _ in 0..connections {
        asking.spawn(async move {
            let mut client = HttpClient::connect(address).await?;
            let (watch, mut answers) = (Stopwatch::start(), 0);
            while watch.elapsed() < time {
                client.request().await?;
                answers += 1;
            }
            anyhow::Ok(answers)
        });
    }
    let mut all = 0;
    while let Some(answers) = asking.join_next().await {
        all += answers??;
    }
    Ok(all)
}

/// Sends a request every `pause` on each of `connections` connections, `times` times. Returns the
/// response times in ascending order.
pub(super) async fn request_paced(
    address: SocketAddr,
    connections: usize,
    pause: Duration,
    times: usize,
) -> Result<Vec<Duration>> {
    let mut asking = JoinSet::new();
    for number in 0..connections {
        asking.spawn(async move {
            let mut client = HttpClient::connect(address).await?;
            // Spread over the interval.
            sleep(pause * number as u32 / connections as u32).await;
            client.request().await?;
            let (watch, mut took) = (Stopwatch::start(), Vec::with_capacity(times));
            for turn in 1..=times {
                sleep((pause * turn as u32).saturating_sub(watch.elapsed())).await;
                let asked = Stopwatch::start();
                client.request().await?;
                took.push(asked.elapsed());
            }
            anyhow::Ok(took)
        });
    }
    let mut all = Vec::new();
    while let Some(took) = asking.join_next().await {
        all.extend(took??);
    }
    all.sort_unstable();
    Ok(all)
}

/// Reads `bytes` over each of `connections` connections from a server that sends without end.
pub(super) async fn read_bytes(
    address: SocketAddr,
    connections: usize,
    bytes: usize,
) -> Result<()> {
    let mut taking = JoinSet::new();
    for _ in 0..connections {
        taking.spawn(async move {
            let mut stream = TcpStream::connect(address).await?;
            skip(&mut stream, bytes as u64).await
        });
    }
    while let Some(taken) = taking.join_next().await {
        taken??;
    }
    Ok(())
}

async fn skip(stream: &mut TcpStream, bytes: u64) -> Result<()> {
    let mut buffer = vec![0; 64 << 10];
    let mut left = bytes;
    while left > 0 {
        let read = stream.read(&mut buffer).await?;
        ensure!(read > 0, "hung up on with {left} bytes left");
        left = left.saturating_sub(read as u64);
    }
    Ok(())
}

/// Requests a large response and reads all `bytes` of it.
pub(super) async fn download(address: SocketAddr, bytes: u64) -> Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(LARGE).await?;
    // The head adds a few bytes, which are not read.
    skip(&mut stream, bytes).await
}

/// Makes `count` connections, `at_once` at a time: each sends a word, reads it back and closes.
pub(super) async fn open_and_close(
    address: SocketAddr,
    at_once: usize,
    count: usize,
) -> Result<()> {
    let (mut coming, room) = (JoinSet::new(), Arc::new(Semaphore::new(at_once)));
    for _ in 0..count {
        let place = room.clone().acquire_owned().await?;
        coming.spawn(async move {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(WORD).await?;
            let mut heard = [0; WORD.len()];
            stream.read_exact(&mut heard).await?;
            drop(place);
            anyhow::Ok(())
        });
        while let Some(gone) = coming.try_join_next() {
            gone??;
        }
    }
    while let Some(gone) = coming.join_next().await {
        gone??;
    }
    Ok(())
}

/// Opens `count` connections, each with a request that is not answered yet.
pub(super) async fn send_requests(address: SocketAddr, count: usize) -> Result<Vec<HttpClient>> {
    let (mut asking, room) = (JoinSet::new(), Arc::new(Semaphore::new(256)));
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        let place = room.clone().acquire_owned().await?;
        asking.spawn(async move {
            let mut client = HttpClient::connect(address).await?;
            client.send().await?;
            drop(place);
            anyhow::Ok(client)
        });
        while let Some(client) = asking.try_join_next() {
            clients.push(client??);
        }
    }
    while let Some(client) = asking.join_next().await {
        clients.push(client??);
    }
    Ok(clients)
}

/// Reads all of their responses.
pub(super) async fn read_responses(clients: Vec<HttpClient>) -> Result<()> {
    let mut hearing = JoinSet::new();
    for mut client in clients {
        hearing.spawn(async move { client.receive().await });
    }
    while let Some(heard) = hearing.join_next().await {
        heard??;
    }
    Ok(())
}

/// The value that `percent` of the sorted durations do not exceed.
pub(super) fn percentile(took: &[Duration], percent: usize) -> Duration {
    let last = took.len().saturating_sub(1);
    took.get((took.len() * percent / 100).min(last))
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_answer_is_known_from_its_head() {
        assert_eq!(length(b"HTTP/1.1 200 OK\r\n").unwrap(), None);
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(length(whole).unwrap(), Some(whole.len()));
        assert!(length(b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n").is_err());
        assert!(length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
