//! Observes an election while it runs.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use http::Method;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{sync::watch, time::timeout};

use super::{
    LEASE, LEDGER, NAMESPACE,
    history::{History, LeaseState, LedgerEntry},
};
use crate::{client::Client, objects::revision};

/// A history that grows.
#[derive(Debug)]
pub(super) struct HistoryObserver {
    history: Mutex<History>,
    /// Why observation stopped.
    blind: Mutex<Option<String>>,
    grown: watch::Sender<()>,
}

impl HistoryObserver {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            history: Mutex::default(),
            blind: Mutex::default(),
            grown: watch::Sender::new(()),
        })
    }

    pub(super) fn add(&self, add: impl FnOnce(&mut History)) {
        add(&mut self.history.lock());
        self.grown.send_replace(());
    }

    /// The result of `find`, as soon as it returns one; the error after `limit` names `what`.
    pub(super) async fn until<T>(
        &self,
        what: &str,
        limit: Duration,
        find: impl Fn(&History) -> Option<T>,
    ) -> Result<T> {
        let mut grown = self.grown.subscribe();
        let found = async {
            loop {
                if let Some(found) = find(&self.history.lock()) {
                    return Ok(found);
                }
                if let Some(why) = &*self.blind.lock() {
                    bail!("observation stopped: {why}");
                }
                grown.changed().await?;
            }
        };
        timeout(limit, found)
            .await
            .with_context(|| format!("{what}: not within {limit:?}"))?
    }

    pub(super) fn history(&self) -> History {
        self.history.lock().clone()
    }
}

/// One of the two watched objects.
#[derive(Debug, Clone, Copy)]
pub(super) enum WatchedObject {
    Lease,
    Ledger,
}

impl WatchedObject {
    pub(super) const BOTH: [Self; 2] = [Self::Lease, Self::Ledger];

    fn path(self) -> (String, &'static str) {
        match self {
            Self::Lease => (
                format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"),
                LEASE,
            ),
            Self::Ledger => (format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), LEDGER),
        }
    }

    /// The current revision of the collection.
    pub(super) async fn now(self, client: &Client) -> Result<u64> {
        let (collection, _) = self.path();
        let mut connection = client.connect().await?;
        let list = connection.send(Method::GET, &collection, "").await?;
        revision(&list.success()?)
    }

    /// Adds every state of the object to the history, in order, for as long as the server sends
    /// events.
    pub(super) async fn follow(self, from: u64, client: Client, observer: Arc<HistoryObserver>) {
        if let Err(error) = self.report(from, &client, &observer).await {
            *observer.blind.lock() = Some(format!("{error:#}"));
            observer.grown.send_replace(());
        }
    }

    async fn report(self, from: u64, client: &Client, observer: &HistoryObserver) -> Result<()> {
        let (collection, name) = self.path();
        let mut last = from;
        loop {
            let path = format!(
                "{collection}?watch=1&resourceVersion={last}&fieldSelector=metadata.name%3D{name}"
            );
            let mut watch = client.connect().await?.watch(&path).await?;
            // A watch ends after a while and is resumed.
            while let Some(event) = watch.next().await? {
                let object = &event["object"];
                match event["type"].as_str() {
                    Some("ADDED" | "MODIFIED") => self.add(object, observer)?,
                    Some("BOOKMARK") => {}
                    _ => bail!("the history has a gap: {event}"),
                }
                last = revision(object)?;
            }
        }
    }

    fn add(self, object: &Value, observer: &HistoryObserver) -> Result<()> {
        match self {
            Self::Lease => {
                let held = LeaseState::read(object)?;
                observer.add(|history| history.leases.push(held));
            }
            Self::Ledger => {
                let entry = LedgerEntry::read(object)?;
                observer.add(|history| history.ledger.push(entry));
            }
        }
        Ok(())
    }

    /// The current revision of the object.
    pub(super) async fn newest(self, client: &Client) -> Result<u64> {
        let (collection, name) = self.path();
        let mut connection = client.connect().await?;
        let path = format!("{collection}/{name}");
        let found = connection.send(Method::GET, &path, "").await?;
        revision(&found.success()?)
    }

    /// The last observed revision of the object.
    pub(super) fn last(self, history: &History) -> u64 {
        let last = match self {
            Self::Lease => history.leases.last().map(|held| held.revision),
            Self::Ledger => history.ledger.last().map(|entry| entry.revision),
        };
        last.unwrap_or_default()
    }
}
