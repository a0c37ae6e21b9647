//! Pods that answer, each for as long as it should.

mod answer;

use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc, time::Duration};

use neap_idle::resolver::net::Listener;
use neap_kit::clock::Clock;
use parking_lot::Mutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    cell::Protocol,
    ledger::{Ledger, Saw},
    memory::Memory,
    street,
};

/// So long whoever ends waits for what is under way; then it is killed.
const KILLED: Duration = Duration::from_secs(30);

/// All pods of the Service.
#[derive(Debug)]
pub(crate) struct Pods {
    pub(crate) memory: Memory,
    pub(crate) clock: Clock,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) protocol: Protocol,
    pub(crate) tasks: TaskTracker,
    /// So long a pod that is told to end goes on taking connections.
    pub(crate) linger: Duration,
    pub(crate) running: Mutex<BTreeMap<SocketAddr, CancellationToken>>,
}

impl Pods {
    /// Starts one. It takes connections as soon as this returns.
    pub(crate) fn start(self: &Arc<Self>, number: u32) -> io::Result<SocketAddr> {
        let address = street::pod(number);
        let net = self.memory.at(address.ip());
        let listener = net.listen(None, address.port())?;
        let term = CancellationToken::new();
        self.running.lock().insert(address, term.clone());
        self.tasks.spawn(self.clone().live(address, listener, term));
        Ok(address)
    }

    /// Tells one to end.
    pub(crate) fn stop(&self, address: SocketAddr) {
        if let Some(term) = self.running.lock().get(&address) {
            term.cancel();
        }
    }

    /// Whether it takes connections.
    pub(crate) fn takes(&self, address: SocketAddr) -> bool {
        self.running.lock().contains_key(&address)
    }

    async fn live(
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

/// Takes connections until `last` has come, and lets end what is under way then.
pub(crate) async fn answer(
    listener: Listener,
    protocol: Protocol,
    ledger: Arc<dyn Saw>,
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
    // Nothing new begins over what is open.
    end.cancel();
    connections.close();
    let _ = clock.within(KILLED, connections.wait()).await;
}
