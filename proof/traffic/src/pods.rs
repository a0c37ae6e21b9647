//! Simulated pods that answer requests.

mod answer;

use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc, time::Duration};

use neap_idle::resolver::net::Listener;
use neap_kit::clock::Clock;
use parking_lot::Mutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    addresses,
    cell::Protocol,
    ledger::{Ledger, RequestSink},
    memory::Memory,
};

/// Time for a terminating pod to finish its requests; then it is killed.
const TERMINATION_GRACE: Duration = Duration::from_secs(30);

/// All pods of the Service.
#[derive(Debug)]
pub(crate) struct Pods {
    pub(crate) memory: Memory,
    pub(crate) clock: Clock,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) protocol: Protocol,
    pub(crate) tasks: TaskTracker,
    /// Time for which a terminating pod accepts connections.
    pub(crate) linger: Duration,
    pub(crate) running: Mutex<BTreeMap<SocketAddr, CancellationToken>>,
}

impl Pods {
    /// Starts a pod. It accepts connections as soon as this returns.
    pub(crate) fn start(self: &Arc<Self>, number: u32) -> io::Result<SocketAddr> {
        let address = addresses::pod(number);
        let net = self.memory.at(address.ip());
        let listener = net.listen(None, address.port())?;
        let term = CancellationToken::new();
        self.running.lock().insert(address, term.clone());
        self.tasks.spawn(self.clone().run(address, listener, term));
        Ok(address)
    }

    /// Terminates a pod.
    pub(crate) fn stop(&self, address: SocketAddr) {
        if let Some(term) = self.running.lock().get(&address) {
            term.cancel();
        }
    }

    /// Whether it accepts connections.
    pub(crate) fn accepts(&self, address: SocketAddr) -> bool {
        self.running.lock().contains_key(&address)
    }

    async fn run(
        self: Arc<Self>,
        address: SocketAddr,
        listener: Listener,
        term: CancellationToken,
    ) {
        let last = async {
            term.cancelled().await;
            self.clock.sleep(self.linger).await;
            self.running.lock().remove(&address);
        };
        answer(
            listener,
            self.protocol,
            self.ledger.clone(),
            last,
            self.clock,
        )
        .await;
    }
}

/// Accepts connections until `last` resolves, then finishes the requests in flight.
pub(crate) async fn answer(
    listener: Listener,
    protocol: Protocol,
    ledger: Arc<dyn RequestSink>,
    last: impl Future<Output = ()>,
    clock: Clock,
) {
    let end = CancellationToken::new();
    let connections = TaskTracker::new();
    let accept = async {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                let (ledger, end) = (ledger.clone(), end.clone());
                connections.spawn(answer::serve(protocol, stream, ledger, end));
            }
        }
    };
    tokio::select! {
        () = last => {}
        () = accept => {}
    }
    drop(listener);
    // No new request starts on open connections.
    end.cancel();
    connections.close();
    let _ = clock.within(TERMINATION_GRACE, connections.wait()).await;
}
