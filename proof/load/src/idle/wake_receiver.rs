//! A stand-in for an operator: receives wake requests, and does nothing about them.

use std::{io, net::SocketAddr, sync::Arc};

use anyhow::Result;
use memchr::memmem;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};
use tokio_util::task::TaskTracker;

const RECEIVED: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
    content-length: 22\r\n\r\n{\"message\":\"received\"}";

/// Listens until it is dropped.
#[derive(Debug)]
pub(super) struct WakeReceiver {
    pub(super) address: SocketAddr,
    asked: Arc<Semaphore>,
    _listening: JoinSet<()>,
}

impl WakeReceiver {
    pub(super) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let asked = Arc::new(Semaphore::new(0));
        let (mut listening, heard) = (JoinSet::new(), asked.clone());
        listening.spawn(async move {
            let connections = TaskTracker::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(hear(stream, heard.clone()));
            }
        });
        Ok(Self {
            address,
            asked,
            _listening: listening,
        })
    }

    /// Forgets the requests received so far.
    pub(super) fn forget(&self) {
        self.asked.forget_permits(usize::MAX >> 3);
    }

    /// Resolves once a wake is requested.
    pub(super) async fn asked(&self) -> Result<()> {
        self.asked.acquire().await?.forget();
        Ok(())
    }
}

async fn hear(mut stream: TcpStream, asked: Arc<Semaphore>) -> io::Result<()> {
    let mut read = Vec::new();
    loop {
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
        // The request is JSON that ends with its only closing brace.
        if memmem::find(&read, b"\r\n\r\n{").is_some() && read.ends_with(b"}") {
            read.clear();
            stream.write_all(RECEIVED).await?;
            asked.add_permits(1);
        }
    }
}
