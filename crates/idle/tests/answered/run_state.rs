//! The state that all actors share: the live processes and pods, and the outcome of every request.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use neap_idle::wake::WakeHandle;
use neap_kit::{clock::Clock, context::Context, manager::Component};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

/// When clients send requests, in milliseconds: while the service sleeps, wakes and is awake, and again.
const REQUEST_TIMES: [u64; 8] = [
    600_000, 600_000, 600_001, 601_500, 605_000, 900_000, 900_000, 930_000,
];
pub(crate) const REQUESTS: usize = REQUEST_TIMES.len();
pub(crate) const LAST_REQUEST: Duration = Duration::from_millis(REQUEST_TIMES[REQUESTS - 1]);

/// A request that a resolver has accepted.
pub(crate) struct AcceptedRequest {
    pub(crate) id: usize,
    pub(crate) reply: oneshot::Sender<Result<(), String>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
enum RequestOutcome {
    #[default]
    Open,
    Answered,
    /// The resolver refused it, for this reason.
    Refused(String),
    /// The connection closed without an answer.
    Closed,
}

#[derive(Default)]
pub(crate) struct RunState {
    /// The wake handle of the running operator.
    pub(crate) operator: Mutex<Option<WakeHandle>>,
    /// Where the running resolver accepts requests.
    pub(crate) resolver: Mutex<Option<mpsc::Sender<AcceptedRequest>>>,
    /// Pods that accept connections.
    pub(crate) pods: Mutex<HashSet<SocketAddr>>,
    pub(crate) woken: AtomicUsize,
    /// How often the resolver was started.
    pub(crate) resolver_starts: AtomicUsize,
    /// For each request, how often pods received it, and its outcome.
    requests: Mutex<Vec<(usize, RequestOutcome)>>,
}

impl RunState {
    /// Records that a pod received the request.
    pub(crate) fn record_received(&self, id: usize) {
        self.requests.lock()[id].0 += 1;
    }

    pub(crate) fn wakes(&self) -> usize {
        self.woken.load(Ordering::SeqCst)
    }

    pub(crate) fn answered(&self) -> usize {
        self.count(|outcome| *outcome == RequestOutcome::Answered)
    }

    pub(crate) fn closed(&self) -> usize {
        self.count(|outcome| *outcome == RequestOutcome::Closed)
    }

    fn count(&self, is: impl Fn(&RequestOutcome) -> bool) -> usize {
        self.requests.lock().iter().filter(|row| is(&row.1)).count()
    }

    /// The requests with a wrong outcome. Nothing in a run takes as long as the deadline, no queue is full
    /// and nothing is deleted, so every refusal is wrong.
    pub(crate) fn violations(&self) -> Vec<String> {
        let restarted = self.resolver_starts.load(Ordering::SeqCst) > 1;
        let requests = self.requests.lock();
        let mut wrong = Vec::new();
        for (id, (seen, outcome)) in requests.iter().enumerate() {
            let fine = match outcome {
                RequestOutcome::Answered => *seen == 1,
                RequestOutcome::Closed => restarted && *seen <= 1,
                RequestOutcome::Open | RequestOutcome::Refused(_) => false,
            };
            if !fine {
                wrong.push(format!(
                    "O4 request {id}: {outcome:?}, received by pods {seen} times"
                ));
            }
        }
        if requests.len() != REQUESTS {
            wrong.push(format!("only {} requests were made", requests.len()));
        }
        wrong
    }

    /// The clients, each a task of its own.
    pub(crate) fn clients(self: &Arc<Self>, context: &Context) -> Vec<Component> {
        let (state, clock) = (self.clone(), context.clock);
        vec![Component::new("clients", move |stop| async move {
            *state.requests.lock() = vec![Default::default(); REQUESTS];
            let mut all = JoinSet::new();
            for (id, at) in REQUEST_TIMES.into_iter().enumerate() {
                let state = state.clone();
                all.spawn(async move {
                    clock.sleep_until(Duration::from_millis(at)).await;
                    let outcome = state.send_request(id, clock).await;
                    state.requests.lock()[id].1 = outcome;
                });
            }
            stop.cancelled().await;
        })]
    }

    async fn send_request(&self, id: usize, clock: Clock) -> RequestOutcome {
        loop {
            let (reply, answer) = oneshot::channel();
            let accept = self.resolver.lock().clone();
            let accepted =
                accept.is_some_and(|accept| accept.try_send(AcceptedRequest { id, reply }).is_ok());
            if accepted {
                return match answer.await {
                    Ok(Ok(())) => RequestOutcome::Answered,
                    Ok(Err(why)) => RequestOutcome::Refused(why),
                    Err(_) => RequestOutcome::Closed,
                };
            }
            // No resolver runs, so the request was not accepted, and the client retries.
            clock.sleep(Duration::from_secs(1)).await;
        }
    }
}
