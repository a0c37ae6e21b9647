//! A pod as a separate process.

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

use crate::{cell::Protocol, ledger::RequestSink, pods};

/// The port of pods.
pub(crate) const PORT: u16 = 8080;

/// Marks the start of a pod in a ledger; no request has this number.
const POD_STARTED: u64 = u64::MAX;

/// The parameters of a pod.
#[derive(Debug)]
pub struct Pod {
    pub protocol: Protocol,
    /// The file in which it records the requests it received.
    pub ledger: PathBuf,
    /// Time for which it accepts connections after SIGTERM.
    pub linger: Duration,
}

impl Pod {
    /// Answers at `POD_IP` until it is terminated.
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
            let file_sink = Arc::new(LedgerFile(Mutex::new(file)));
            file_sink.record_received(POD_STARTED);
            let clock = Clock::system();
            let last = async {
                term.recv().await;
                clock.sleep(self.linger).await;
            };
            pods::answer(listener, self.protocol, file_sink, last, clock).await;
            Ok(())
        })
    }
}

/// Request numbers, one after the other. A killed process has written every request that it
/// answered.
#[derive(Debug)]
struct LedgerFile(Mutex<File>);

impl RequestSink for LedgerFile {
    fn record_received(&self, id: u64) {
        // A number that cannot be written shows up as an answer without a request.
        let _ = self.0.lock().write_all(&id.to_be_bytes());
    }
}

/// The contents of a ledger.
#[derive(Debug)]
pub(crate) struct LedgerContents {
    /// The number of pods that started.
    pub(crate) pods: u64,
    /// The requests they received.
    pub(crate) requests: Vec<u64>,
}

pub(crate) fn read(ledger: &Path) -> Result<LedgerContents> {
    let bytes = std::fs::read(ledger)?;
    let written = bytes.as_chunks::<8>().0.iter();
    let written = written.map(|id| u64::from_be_bytes(*id));
    let (began, requests): (Vec<_>, _) = written.partition(|id| *id == POD_STARTED);
    let pods = began.len() as u64;
    Ok(LedgerContents { pods, requests })
}
