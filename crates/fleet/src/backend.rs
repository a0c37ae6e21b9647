//! The backend: claims clusters that need work, and carries it out step by step.
//!
//! A worker holds a lease and renews it; every write carries the fence of the lease, so that a worker
//! that was stopped and returns writes nothing. A renewal that fails is tried again until two thirds of
//! the lease are over. Work that fails its workers repeatedly is given up with the reason.

mod end;
mod journal;
mod outbox;
mod queues;
mod renewal;
mod subscriptions;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod under_trial;
mod worker;

use std::{sync::Arc, time::Duration};

use neap_kit::{clock::Clock, manager::Component, telemetry::Telemetry, why::chain};
use neap_store::Store;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) use self::worker::request_cancel;
pub use self::{end::EndFacts, journal::StoreJournal};
use crate::{
    documents::{CLUSTERS, QUEUE, SUBSCRIPTIONS},
    install::StepContext,
};

/// How a backend works.
#[derive(Debug, Clone)]
pub struct BackendOptions {
    /// Its identity, unique among processes.
    pub owner: String,
    /// The maximum number of clusters that it works on at a time.
    pub workers: usize,
    /// How long a lease lasts.
    pub lease: Duration,
    /// How often a lease is renewed.
    pub renewal: Duration,
    /// How often the queues are read if nothing is announced and no lease ends before.
    pub poll: Duration,
    /// How often work is claimed without progress before it is given up.
    pub max_dequeues: i64,
    /// The time that workers have to hand over when the process stops.
    pub hand_over: Duration,
    /// How often conditions are polled, instead of what their steps say: where clusters are made in no time.
    pub condition_poll: Option<Duration>,
}

impl BackendOptions {
    /// The usual values.
    pub fn new(owner: impl Into<String>) -> Self {
        Self {
            owner: owner.into(),
            workers: 100,
            lease: Duration::from_secs(12),
            renewal: Duration::from_secs(3),
            poll: Duration::from_secs(2),
            max_dequeues: 5,
            hand_over: Duration::from_secs(5),
            condition_poll: None,
        }
    }

    fn lease_millis(&self) -> i64 {
        i64::try_from(self.lease.as_millis()).unwrap_or(i64::MAX)
    }
}

/// A backend. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Backend(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    context: StepContext,
    options: BackendOptions,
    telemetry: Telemetry,
}

/// How often the outbox is read.
const OUTBOX_INTERVAL: Duration = Duration::from_secs(5);
/// How often expired documents are removed.
const EXPIRY_INTERVAL: Duration = Duration::from_mins(1);
/// How often the lengths of the queues are measured.
const QUEUE_INTERVAL: Duration = Duration::from_mins(1);
/// The least delay between two looks at the queues: another backend may be claiming what could be claimed.
const CLAIM_INTERVAL: Duration = Duration::from_millis(200);
/// The delay after the end of a lease before it is claimed: the database rounds times.
const CLAIM_MARGIN: Duration = Duration::from_millis(10);
/// The delay after the database could not be used.
const STORE_RETRY_DELAY: Duration = Duration::from_secs(1);

impl Backend {
    /// A backend that works on the documents of `context`.
    pub fn new(context: StepContext, options: BackendOptions, telemetry: Telemetry) -> Self {
        Self(Arc::new(Shared {
            context,
            options,
            telemetry,
        }))
    }

    fn store(&self) -> &Store {
        &self.0.context.store
    }

    fn clock(&self) -> Clock {
        self.0.context.clock
    }

    /// The component that claims work.
    pub fn component(&self, name: &'static str) -> Component {
        let backend = self.clone();
        Component::new(name, move |stop| async move { backend.run(stop).await })
    }

    /// Listens to announcements, empties the outbox, removes what has expired and measures the queues.
    pub fn housekeeping(&self, name: &'static str) -> Component {
        let backend = self.clone();
        Component::new(name, move |stop| async move {
            let clock = backend.clock();
            let listening = async {
                loop {
                    if let Err(error) = backend.store().listen().await {
                        let why = chain(&error);
                        tracing::warn!(
                            why,
                            "announcements of the database are not heard; workers poll"
                        );
                    }
                    clock.sleep(STORE_RETRY_DELAY).await;
                }
            };
            let expiring = async {
                loop {
                    if let Err(error) = backend.store().expire().await {
                        let why = chain(&error);
                        tracing::warn!(why, "expired documents were not removed");
                    }
                    clock.sleep(EXPIRY_INTERVAL).await;
                }
            };
            let delivering = async {
                loop {
                    if let Err(error) = backend.deliver().await {
                        let why = chain(&error);
                        tracing::warn!(why, "the outbox was not read; it is read again");
                    }
                    clock.sleep(OUTBOX_INTERVAL).await;
                }
            };
            let measuring = async {
                let meter = queues::meter(&backend.0.telemetry);
                loop {
                    backend.measure_queues(&meter).await;
                    clock.sleep(QUEUE_INTERVAL).await;
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = listening => {}
                () = expiring => {}
                () = delivering => {}
                () = measuring => {}
            }
        })
    }

    async fn run(&self, stop: CancellationToken) {
        let mut announced = self.store().work_announced();
        let (mut workers, clock) = (JoinSet::new(), self.clock());
        let handing_over = CancellationToken::new();
        while !stop.is_cancelled() {
            announced.mark_unchanged();
            while workers.try_join_next().is_some() {}
            if workers.len() < self.0.options.workers
                && self.claim(&mut workers, &handing_over).await
            {
                continue;
            }
            let is_full = workers.len() >= self.0.options.workers;
            let poll = if is_full {
                self.0.options.poll
            } else {
                self.until_claim().await
            };
            tokio::select! {
                () = stop.cancelled() => {}
                _ = announced.changed(), if !is_full => {}
                Some(_) = workers.join_next(), if is_full => {}
                () = clock.sleep(poll) => {}
            }
        }
        // Each worker ends its attempt and its lease, so that another backend continues at once.
        handing_over.cancel();
        let ended = async { while workers.join_next().await.is_some() {} };
        let _ = clock.within(self.0.options.hand_over, ended).await;
    }

    /// The time until the queues are read again: the work of a backend that died is claimed as soon as its
    /// lease ends, and not at the poll after it.
    async fn until_claim(&self) -> Duration {
        let mut wait = self.0.options.poll;
        for collection in [CLUSTERS, SUBSCRIPTIONS] {
            // If the database cannot be used, the poll reports it.
            if let Ok(Some(next)) = self.store().next_claim(collection, QUEUE).await {
                let next = Duration::from_millis(u64::try_from(next).unwrap_or_default());
                wait = wait.min((next + CLAIM_MARGIN).max(CLAIM_INTERVAL));
            }
        }
        wait
    }

    /// Claims one document and starts a worker for it. False if there is none.
    async fn claim(&self, workers: &mut JoinSet<()>, stop: &CancellationToken) -> bool {
        let BackendOptions { owner, .. } = &self.0.options;
        let lease = self.0.options.lease_millis();
        for collection in [CLUSTERS, SUBSCRIPTIONS] {
            let claimed_at = self.clock().uptime();
            match self.store().claim(collection, QUEUE, owner, lease).await {
                Ok(Some(claimed)) => {
                    let (backend, stop) = (self.clone(), stop.clone());
                    workers.spawn(async move {
                        if collection == CLUSTERS {
                            backend.work_on_cluster(claimed, claimed_at, stop).await;
                        } else {
                            backend.work_on_subscription(claimed, claimed_at).await;
                        }
                    });
                    return true;
                }
                Ok(None) => {}
                Err(error) => {
                    let why = chain(&error);
                    tracing::warn!(why, "the queue could not be read");
                    self.clock().sleep(STORE_RETRY_DELAY).await;
                    return false;
                }
            }
        }
        false
    }
}
