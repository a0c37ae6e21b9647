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
use neap_idle::resolver::net::Listener;
use neap_kit::clock::Clock;
use parking_lot::Mutex;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use crate::{cell::Protocol, ledger::Saw, pods};

/// Where pods listen.
pub(crate) const PORT: u16 = 8080;

/// Stands in a ledger for a pod that began; no request has this number.
const BEGAN: u64 = u64::MAX;

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
            let listener = Listener::over(TcpListener::bind(address).await?)?;
            let mut term = signal(SignalKind::terminate())?;
            let file = File::options()
                .append(true)
                .create(true)
                .open(&self.ledger)?;
            let book = Arc::new(Book(Mutex::new(file)));
            book.saw(BEGAN);
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
#[derive(Debug)]
pub(crate) struct Read {
    /// So many pods began.
    pub(crate) pods: u64,
    /// What they have got.
    pub(crate) requests: Vec<u64>,
}

/// Reads it.
pub(crate) fn read(ledger: &Path) -> Result<Read> {
    let bytes = std::fs::read(ledger)?;
    let written = bytes.as_chunks::<8>().0.iter();
    let written = written.map(|id| u64::from_be_bytes(*id));
    let (began, requests): (Vec<_>, _) = written.partition(|id| *id == BEGAN);
    let pods = began.len() as u64;
    Ok(Read { pods, requests })
}
