//! One of the writers: keeps changing its own objects, and one that all share, until the server
//! is gone.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use http::Method;

use super::{
    ledger::{Content, Entry, Found, Ledger, Unknown},
    promises::Promises,
};
use crate::{
    client::{Answer, Client, Connection},
    dice::Dice,
    objects::{self, RESOURCES, Resource},
};

/// Objects of each resource that a writer owns.
const OWNED: usize = 6;
/// So much padding makes logs grow fast enough that compactions happen.
const PADDING: usize = 8000;
pub(super) const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

/// The object that all writers increment.
pub(super) const COUNTER: &str = "counter";

/// A writer and what it was promised.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) ledger: Ledger,
    promises: Arc<Promises>,
    dice: Dice,
    written: u64,
}

/// A write: how it is sent and what it leaves.
struct Write {
    method: Method,
    content_type: &'static str,
    path: String,
    body: String,
    leaves: Option<Content>,
}

impl Writer {
    pub(super) fn new(index: usize, dice: Dice, promises: Arc<Promises>) -> Self {
        let names = (0..OWNED).map(|object| format!("w{index}-{object}"));
        let keys = names.flat_map(|name| RESOURCES.map(|resource| (resource, name.clone())));
        Self {
            ledger: keys.map(|key| (key, Entry::default())).collect(),
            promises,
            dice,
            written: 0,
        }
    }

    /// Writes until the server is gone. An error is a broken promise.
    pub(super) async fn work(&mut self, client: &Client) -> Result<()> {
        let Ok(mut connection) = client.connect().await else {
            return Ok(());
        };
        loop {
            let alive = if self.dice.below(20) == 0 {
                self.increment(&mut connection).await?
            } else {
                self.change(&mut connection).await?
            };
            if !alive {
                return Ok(());
            }
        }
    }

    /// Changes one object of its own. False if the server is gone.
    async fn change(&mut self, connection: &mut Connection) -> Result<bool> {
        let chosen = self.dice.below(self.ledger.len());
        let Some(key) = self.ledger.keys().nth(chosen).cloned() else {
            return Ok(false);
        };
        let entry = self.ledger.get(&key).copied().unwrap_or_default();
        let write = self.choose(key.0, &key.1, &entry);
        let floor = self.promises.highest();
        let sent = connection.send_as(write.method, &write.path, write.content_type, write.body);
        let Ok(answer) = sent.await else {
            let unknown = Unknown {
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

    /// A create for an absent object; a replacement, a patch or a delete for another.
    fn choose(&mut self, resource: Resource, name: &str, entry: &Entry) -> Write {
        self.written += 1;
        let (number, padding) = (self.written, self.dice.below(PADDING));
        let object = resource.object(name, number, padding);
        let content = Content { number, padding };
        let write = |method, content_type, path, body, leaves| Write {
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
        match self.dice.below(8) {
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
    ) -> Result<Option<Found>> {
        let object = answer.success()?;
        let Some(content) = leaves else {
            self.promises.acknowledge_delete();
            return Ok(None);
        };
        let found = Found::of(resource, &object)?;
        if found.content != content {
            bail!("wrote {content:?}, but was answered {found:?}");
        }
        self.promises.acknowledge(resource, found.revision, floor)?;
        Ok(Some(found))
    }

    /// Adds one to the shared counter, unless somebody was faster. False if the server is gone.
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
