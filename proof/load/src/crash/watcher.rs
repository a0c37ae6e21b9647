//! A watcher that records its revision and resumes from it after a crash.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{
    client::{Client, Watch},
    objects::{self, Resource},
};

/// Name and revision of every object.
pub(super) type ObjectRevisions = BTreeMap<String, u64>;

/// How a watch continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchContinuation {
    /// At its revision.
    Resumed,
    /// Its revision had expired.
    Expired,
}

/// A watcher and its state.
#[derive(Debug)]
pub(super) struct ResumingWatcher {
    resource: Resource,
    /// Whether it also watches while writers write, rather than only after each crash.
    pub(super) follows: bool,
    revision: u64,
    model: ObjectRevisions,
    /// Revisions of events since the last check.
    seen: HashSet<u64>,
    /// The revision of the last check.
    since: u64,
    expired: bool,
}

impl ResumingWatcher {
    /// A watcher that has listed at `revision`.
    pub(super) fn new(
        resource: Resource,
        follows: bool,
        revision: u64,
        model: ObjectRevisions,
    ) -> Self {
        Self {
            resource,
            follows,
            revision,
            model,
            seen: HashSet::new(),
            since: revision,
            expired: false,
        }
    }

    pub(super) fn resource(&self) -> Resource {
        self.resource
    }

    /// Watches until the server is gone. An error is a broken promise.
    pub(super) async fn follow(&mut self, client: &Client) -> Result<()> {
        let Ok(mut watch) = self.open(client).await else {
            return Ok(());
        };
        while !self.expired {
            match watch.next().await {
                Ok(Some(event)) => self.take(&event)?,
                Ok(None) | Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Watches up to the event at `until`.
    pub(super) async fn catch_up(
        &mut self,
        client: &Client,
        until: u64,
    ) -> Result<WatchContinuation> {
        if !self.expired {
            let mut watch = self.open(client).await?;
            if watch.status == 410 {
                self.expired = true;
            }
            while !self.expired && self.revision < until {
                let event = watch.next().await?;
                self.take(&event.context("the watch ended too early")?)?;
            }
        }
        Ok(if self.expired {
            WatchContinuation::Expired
        } else {
            WatchContinuation::Resumed
        })
    }

    async fn open(&self, client: &Client) -> Result<Watch> {
        let collection = self.resource.collection();
        let path = format!("{collection}?watch=1&resourceVersion={}", self.revision);
        let watch = client.connect().await?.watch(&path).await?;
        ensure!(
            matches!(watch.status, 200 | 410),
            "a watch from {} was answered with {}",
            self.revision,
            watch.status
        );
        Ok(watch)
    }

    /// Checks that events come in the order of their revisions and match the state before.
    fn take(&mut self, event: &Value) -> Result<()> {
        let (kind, object) = (event["type"].as_str().unwrap_or_default(), &event["object"]);
        if kind == "ERROR" && object["code"] == 410 {
            self.expired = true;
            return Ok(());
        }
        let revision = objects::revision(object)?;
        let name = objects::name(object)?.to_owned();
        ensure!(
            revision > self.revision,
            "event {revision} came after {}",
            self.revision
        );
        self.revision = revision;
        if !objects::is_load(&name) {
            return Ok(());
        }
        let before = match kind {
            "ADDED" | "MODIFIED" => self.model.insert(name, revision),
            "DELETED" => self.model.remove(&name),
            _ => bail!("unexpected event {event}"),
        };
        let fits = before.is_some() == (kind != "ADDED");
        ensure!(fits, "{kind} at {revision}, but before was {before:?}");
        self.seen.insert(revision);
        Ok(())
    }

    /// Compares with a list read at the current revision, and with the writes acknowledged since
    /// the last check; then continues from the list.
    pub(super) fn check(
        &mut self,
        list: &ObjectRevisions,
        recent: &[(Resource, u64)],
        at: u64,
    ) -> Result<()> {
        if !self.expired {
            ensure!(
                self.model == *list,
                "{:?} watched from {}: the events leave {:?}, but the list says {list:?}",
                self.resource,
                self.since,
                self.model
            );
            let missing = recent.iter().find(|(resource, revision)| {
                *resource == self.resource
                    && *revision > self.since
                    && !self.seen.contains(revision)
            });
            ensure!(missing.is_none(), "no event for {missing:?}");
        }
        *self = Self::new(self.resource, self.follows, at, list.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(kind: &str, name: &str, revision: u64) -> Value {
        let revision = revision.to_string();
        json!({"type": kind, "object": {"metadata": {"name": name, "resourceVersion": revision}}})
    }

    fn watcher() -> ResumingWatcher {
        ResumingWatcher::new(
            Resource::ConfigMaps,
            true,
            5,
            ObjectRevisions::from([("a".into(), 4)]),
        )
    }

    #[test]
    fn events_that_do_not_fit_are_noticed() {
        for (event, fits) in [
            (event("ADDED", "b", 6), true),
            (event("ADDED", "a", 6), false),
            (event("MODIFIED", "a", 6), true),
            (event("MODIFIED", "b", 6), false),
            (event("DELETED", "a", 6), true),
            (event("DELETED", "b", 6), false),
            (event("MODIFIED", "a", 5), false),
        ] {
            assert_eq!(watcher().take(&event).is_ok(), fits, "{event}");
        }
    }

    #[test]
    fn missed_event_is_noticed_though_the_state_is_right() {
        let mut watcher = watcher();
        watcher.take(&event("MODIFIED", "a", 8)).unwrap();
        let list = ObjectRevisions::from([("a".into(), 8)]);
        assert!(
            watcher
                .check(&list, &[(Resource::ConfigMaps, 7)], 8)
                .is_err()
        );
        assert!(watcher.check(&list, &[(Resource::Widgets, 7)], 8).is_ok());
    }
}
