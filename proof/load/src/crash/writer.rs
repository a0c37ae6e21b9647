//! A writer: keeps changing its own objects, and a shared one, until the server is gone.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use http::Method;

use super::{
    ledger::{Content, Ledger, LedgerRow, ObservedObject, UnansweredWrite},
    promises::Promises,
};
use crate::{
    client::{Answer, Client, Connection},
    objects::{self, RESOURCES, Resource},
    rng::SeededRng,
};

/// Objects of each resource that a writer owns.
const OWNED: usize = 6;
/// Bytes of padding at most, so that logs grow fast enough for compactions.
const PADDING: usize = 8000;
pub(super) const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

/// The object that all writers increment.
pub(super) const COUNTER: &str = "counter";

/// A writer and what it was promised.
#[derive(Debug)]
pub(super) struct LoadWriter {
    pub(super) ledger: Ledger,
    promises: Arc<Promises>,
    rng: SeededRng,
    written: u64,
}

/// A write: its request, and the content it leaves.
struct WriteRequest {
    method: Method,
    content_type: &'static str,
    path: String,
    body: String,
    leaves: Option<Content>,
}

impl LoadWriter {
    pub(super) fn new(index: usize, rng: SeededRng, promises: Arc<Promises>) -> Self {
        let names = (0..OWNED).map(|object| format!("w{index}-{object}"));
        let keys = names.flat_map(|name| RESOURCES.map(|resource| (resource, name.clone())));
        Self {
            ledger: keys.map(|key| (key, LedgerRow::default())).collect(),
            promises,
            rng,
            written: 0,
        }
    }

    /// Writes until the server is gone. An error is a broken promise.
    pub(super) async fn work(&mut self, client: &Client) -> Result<()> {
        let Ok(mut connection) = client.connect().await else {
            return Ok(());
        };
        loop {
            let alive = if self.rng.below(20) == 0 {
                self.increment(&mut connection).await?
            } else {
                self.change(&mut connection).await?
            };
            if !alive {
                return Ok(());
            }
        }
    }

    /// Changes one of its own objects. Returns false if the server is gone.
    async fn change(&mut self, connection: &mut Connection) -> Result<bool> {
        let chosen = self.rng.below(self.ledger.len());
        let Some(key) = self.ledger.keys().nth(chosen).cloned() else {
            return Ok(false);
        };
        let entry = self.ledger.get(&key).copied().unwrap_or_default();
        let write = self.choose(key.0, &key.1, &entry);
        let floor = self.promises.highest();
        let sent = connection.send_as(write.method, &write.path, write.content_type, write.body);
        let Ok(answer) = sent.await else {
            let unknown = UnansweredWrite {
                leaves: write.leaves,
                floor,
            };
            self.ledger.entry(key).or_default().unknown = Some(unknown);
            return Ok(false);
        };
        let acknowledged = self
            .acknowledge(key.0, &answer, write.leaves, floor)
            .with_context(|| format!("{key:?}"))?;
        self.ledger.entry(key).or_default().acknowledged = acknowledged;
        Ok(true)
    }

    /// A create for an absent object; a replacement, a patch or a delete otherwise.
    fn choose(&mut self, resource: Resource, name: &str, entry: &LedgerRow) -> WriteRequest {
        self.written += 1;
        let (number, padding) = (self.written, self.rng.below(PADDING));
        let object = resource.object(name, number, padding);
        let content = Content { number, padding };
        let write = |method, content_type, path, body, leaves| WriteRequest {
            method,
            content_type,
            path,
            body,
            leaves,
        };
        let Some(found) = entry.acknowledged else {
            let path = resource.collection();
            return write(Method::POST, JSON, path, object.to_string(), Some(content));
        };
        let path = resource.path(name);
        match self.rng.below(8) {
            0 => write(Method::DELETE, JSON, path, String::new(), None),
            1..=3 => {
                let leaves = Content {
                    number,
                    ..found.content
                };
                let patch = resource.patch(number).to_string();
                write(Method::PATCH, MERGE, path, patch, Some(leaves))
            }
            _ => {
                let mut object = object;
                object["metadata"]["resourceVersion"] = found.revision.to_string().into();
                write(Method::PUT, JSON, path, object.to_string(), Some(content))
            }
        }
    }

    fn acknowledge(
        &self,
        resource: Resource,
        answer: &Answer,
        leaves: Option<Content>,
        floor: u64,
    ) -> Result<Option<ObservedObject>> {
        let object = answer.success()?;
        let Some(content) = leaves else {
            self.promises.acknowledge_delete();
            return Ok(None);
        };
        let found = ObservedObject::of(resource, &object)?;
        if found.content != content {
            bail!("wrote {content:?}, but was answered {found:?}");
        }
        self.promises.acknowledge(resource, found.revision, floor)?;
        Ok(Some(found))
    }

    /// Increments the shared counter, unless another writer was faster. Returns false if the server
    /// is gone.
    async fn increment(&mut self, connection: &mut Connection) -> Result<bool> {
        let resource = Resource::ConfigMaps;
        let path = resource.path(COUNTER);
        let Ok(answer) = connection.send(Method::GET, &path, "").await else {
            return Ok(false);
        };
        let object = answer.success()?;
        let number = resource.number(&object).context("the counter is empty")? + 1;
        let mut next = resource.object(COUNTER, number, 0);
        next["metadata"]["resourceVersion"] = objects::revision(&object)?.to_string().into();
        let floor = self.promises.highest();
        let Ok(answer) = connection.send(Method::PUT, &path, next.to_string()).await else {
            self.promises.count_increment(false);
            return Ok(false);
        };
        if answer.status != 409 {
            let revision = objects::revision(&answer.success()?)?;
            self.promises.acknowledge(resource, revision, floor)?;
            self.promises.count_increment(true);
        }
        Ok(true)
    }
}
