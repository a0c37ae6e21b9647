//! What is seen of an election while it goes on.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use http::Method;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{sync::watch, time::timeout};

use super::{
    LEASE, LEDGER, NAMESPACE,
    history::{Entry, Held, History},
};
use crate::{client::Client, objects::revision};

/// A history that grows.
#[derive(Debug)]
pub(super) struct Seen {
    history: Mutex<History>,
    /// Why no more is seen.
    blind: Mutex<Option<String>>,
    grown: watch::Sender<()>,
}

impl Seen {
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

    /// What `look` finds, as soon as it finds something; an error that names `what` if it never
    /// does.
    pub(super) async fn until<T>(
        &self,
        what: &str,
        patience: Duration,
        look: impl Fn(&History) -> Option<T>,
    ) -> Result<T> {
        let mut grown = self.grown.subscribe();
        let found = async {
            loop {
                if let Some(found) = look(&self.history.lock()) {
                    return Ok(found);
                }
                if let Some(why) = &*self.blind.lock() {
                    bail!("nothing more is seen: {why}");
                }
                grown.changed().await?;
            }
        };
        timeout(patience, found)
            .await
            .with_context(|| format!("{what}: not within {patience:?}"))?
    }

    pub(super) fn history(&self) -> History {
        self.history.lock().clone()
    }
}

/// One of the two objects that are looked at.
#[derive(Debug, Clone, Copy)]
pub(super) enum Watched {
    Lease,
    Ledger,
}

impl Watched {
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

    /// The revision of the collection as it is now.
    pub(super) async fn now(self, client: &Client) -> Result<u64> {
        let (collection, _) = self.path();
        let mut connection = client.connect().await?;
        let list = connection.send(Method::GET, &collection, "").await?;
        revision(&list.success()?)
    }

    /// Adds every state of the object to what is seen, in order, for as long as the server tells.
    pub(super) async fn follow(self, from: u64, client: Client, seen: Arc<Seen>) {
        if let Err(error) = self.tell(from, &client, &seen).await {
            *seen.blind.lock() = Some(format!("{error:#}"));
            seen.grown.send_replace(());
        }
    }

    async fn tell(self, from: u64, client: &Client, seen: &Seen) -> Result<()> {
        let (collection, name) = self.path();
        let mut last = from;
        loop {
            let path = format!(
                "{collection}?watch=1&resourceVersion={last}&fieldSelector=metadata.name%3D{name}"
            );
            let mut watch = client.connect().await?.watch(&path).await?;
            // A watch ends after a while and goes on from where it was.
            while let Some(event) = watch.next().await? {
                let object = &event["object"];
                match event["type"].as_str() {
                    Some("ADDED" | "MODIFIED") => self.add(object, seen)?,
                    Some("BOOKMARK") => {}
                    _ => bail!("the history has a gap: {event}"),
                }
                last = revision(object)?;
            }
        }
    }

    fn add(self, object: &Value, seen: &Seen) -> Result<()> {
        match self {
            Self::Lease => {
                let held = Held::read(object)?;
                seen.add(|history| history.leases.push(held));
            }
            Self::Ledger => {
                let entry = Entry::read(object)?;
                seen.add(|history| history.ledger.push(entry));
            }
        }
        Ok(())
    }

    /// The revision of the object as it is now.
    pub(super) async fn newest(self, client: &Client) -> Result<u64> {
        let (collection, name) = self.path();
        let mut connection = client.connect().await?;
        let path = format!("{collection}/{name}");
        let found = connection.send(Method::GET, &path, "").await?;
        revision(&found.success()?)
    }

    /// The last revision of it that was seen.
    pub(super) fn last(self, history: &History) -> u64 {
        let last = match self {
            Self::Lease => history.leases.last().map(|held| held.revision),
            Self::Ledger => history.ledger.last().map(|entry| entry.revision),
        };
        last.unwrap_or_default()
    }
}
