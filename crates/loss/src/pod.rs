//! A pod as a process of its own.

use std::{
    fs::File,
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use neap_kit::clock::Clock;
use parking_lot::Mutex;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use crate::{cell::Protocol, ledger::Saw, pods};

/// Where pods listen.
pub(crate) const PORT: u16 = 8080;

/// What a pod is told.
#[derive(Debug)]
pub struct Pod {
    /// What it speaks.
    pub protocol: Protocol,
    /// Where it writes down what it has got.
    pub ledger: PathBuf,
    /// So long it takes connections after it was told to end.
    pub linger: Duration,
}

impl Pod {
    /// Answers at `POD_IP` until it is told to end.
    pub fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let address = std::env::var("POD_IP").context("POD_IP says where to listen")?;
            let address = SocketAddr::new(address.parse()?, PORT);
            let listener = TcpListener::bind(address).await?;
            let mut term = signal(SignalKind::terminate())?;
            let file = File::options()
                .append(true)
                .create(true)
                .open(&self.ledger)?;
            let book = Arc::new(Book(Mutex::new(file)));
            let clock = Clock::system();
            let last = async {
                term.recv().await;
                clock.sleep(self.linger).await;
            };
            pods::answer(listener, self.protocol, book, last, clock).await;
            Ok(())
        })
    }
}

/// Numbers, one after the other. Whoever is killed has written what it has answered.
#[derive(Debug)]
struct Book(Mutex<File>);

impl Saw for Book {
    fn saw(&self, id: u64) {
        // One that cannot be written shows as an answer without a request.
        let _ = self.0.lock().write_all(&id.to_be_bytes());
    }
}

/// What pods have written down.
pub(crate) fn read(ledger: &Path) -> Result<Vec<u64>> {
    let bytes = std::fs::read(ledger)?;
    let ids = bytes.as_chunks::<8>().0.iter();
    Ok(ids.map(|id| u64::from_be_bytes(*id)).collect())
}
