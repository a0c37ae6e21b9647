//! The checks after each restart, before any client writes again.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use http::Method;

use super::{
    CrashRun, ResumingWatcher, launch,
    ledger::ObservedObject,
    watcher::{ObjectRevisions, WatchContinuation},
    writer::{COUNTER, MERGE},
};
use crate::{
    bulk::{BulkRequest, send_all},
    client::{Client, Connection},
    objects::{self, RESOURCES, Resource},
};

/// Written by the check itself, so that a watcher knows when it has received everything before.
const MARKER: &str = "marker";
/// Objects that no client changes, so that a snapshot takes a while to write.
const BALLAST: usize = 2000;
const BALLAST_PADDING: usize = 4000;
const BALLAST_PATH: &str = "/api/v1/namespaces/default/configmaps";

/// A list, read at one revision.
struct ListResult {
    revision: u64,
    objects: BTreeMap<String, ObservedObject>,
}

impl ListResult {
    fn model(&self) -> ObjectRevisions {
        let objects = self.objects.iter();
        objects
            .map(|(name, found)| (name.clone(), found.revision))
            .collect()
    }
}

impl CrashRun {
    /// Creates the objects of the run; returns the time of a start.
    pub(super) async fn prepare(&mut self, neap: &std::path::Path) -> Result<std::time::Duration> {
        let server = launch(neap, self.data.path()).await?;
        let client = server.client()?;
        let mut connection = client.connect().await?;
        objects::prepare(&mut connection).await?;
        for (resource, name) in [
            (Resource::ConfigMaps, COUNTER),
            (Resource::ConfigMaps, MARKER),
            (Resource::Widgets, MARKER),
        ] {
            let object = resource.object(name, 0, 0);
            objects::create(&mut connection, resource, &object)
                .await?
                .success()?;
        }
        send_all(&client, 8, BALLAST, ballast).await?;
        for resource in RESOURCES {
            let listed = list(&mut connection, resource).await?;
            for follows in [true, false] {
                let model = listed.model();
                self.watchers.push(ResumingWatcher::new(
                    resource,
                    follows,
                    listed.revision,
                    model,
                ));
            }
        }
        let took = server.ready_after();
        server.kill()?;
        Ok(took)
    }

    /// Checks the server against all promises.
    pub(super) async fn check(&mut self, client: &Client) -> Result<()> {
        let mut connection = client.connect().await?;
        let recent = self.promises.take_recent();
        for resource in RESOURCES {
            let mut listed = list(&mut connection, resource).await?;
            let highest = self.promises.highest();
            ensure!(
                listed.revision >= highest,
                "the newest revision is {}, but {highest} was acknowledged",
                listed.revision
            );
            self.verify(resource, &listed)?;
            self.mark(&mut connection, resource, &mut listed).await?;
            let model = listed.model();
            for watcher in self
                .watchers
                .iter_mut()
                .filter(|w| w.resource() == resource)
            {
                match watcher.catch_up(client, listed.revision).await? {
                    WatchContinuation::Resumed => self.tally.resumed += 1,
                    WatchContinuation::Expired => self.tally.expired += 1,
                }
                watcher.check(&model, &recent, listed.revision)?;
            }
        }
        Ok(())
    }

    /// Compares the list with what the writers were promised.
    fn verify(&mut self, resource: Resource, listed: &ListResult) -> Result<()> {
        let mut known = 1;
        for writer in &mut self.writers {
            let entries = writer.ledger.iter_mut();
            for (key, entry) in entries.filter(|(key, _)| key.0 == resource) {
                let found = listed.objects.get(&key.1).copied();
                let landed = entry.verify(found).with_context(|| format!("{key:?}"))?;
                self.tally.landed += usize::from(landed);
                known += usize::from(found.is_some());
            }
        }
        if resource == Resource::ConfigMaps {
            known += 1;
            let counter = listed.objects.get(COUNTER).context("the counter is gone")?;
            self.promises.check_counter(counter.content.number)?;
        }
        ensure!(
            listed.objects.len() == known,
            "{} objects, {} of which were never written",
            listed.objects.len(),
            listed.objects.len().abs_diff(known)
        );
        Ok(())
    }

    /// Writes the marker, which gets a revision higher than all before.
    async fn mark(
        &self,
        connection: &mut Connection,
        resource: Resource,
        listed: &mut ListResult,
    ) -> Result<()> {
        let before = listed.objects.get(MARKER).context("the marker is gone")?;
        let patch = resource.patch(before.content.number + 1).to_string();
        let path = resource.path(MARKER);
        let sent = connection.send_as(Method::PATCH, &path, MERGE, patch);
        let found = ObservedObject::of(resource, &sent.await?.success()?)?;
        self.promises
            .acknowledge(resource, found.revision, listed.revision)?;
        listed.revision = found.revision;
        listed.objects.insert(MARKER.to_owned(), found);
        Ok(())
    }

    /// Checks that the unchanged objects are complete.
    pub(super) async fn check_ballast(&self, client: &Client) -> Result<()> {
        let mut connection = client.connect().await?;
        let answer = connection.send(Method::GET, BALLAST_PATH, "").await?;
        let list = answer.success()?;
        let items = list["items"].as_array().context("no items")?;
        let resource = Resource::ConfigMaps;
        let numbers = items.iter().filter(|item| {
            let padding = item["data"]["padding"].as_str().map(str::len);
            padding == Some(BALLAST_PADDING) && resource.number(item).is_some()
        });
        let count = numbers.count();
        if count != BALLAST {
            bail!("{count} of {BALLAST} unchanged objects are complete");
        }
        Ok(())
    }
}

fn ballast(number: usize) -> BulkRequest {
    let name = format!("ballast-{number}");
    let mut object = Resource::ConfigMaps.object(&name, number as u64, BALLAST_PADDING);
    object["metadata"]["namespace"] = "default".into();
    BulkRequest {
        method: Method::POST,
        path: BALLAST_PATH.to_owned(),
        content_type: "application/json",
        body: object.to_string(),
    }
}

async fn list(connection: &mut Connection, resource: Resource) -> Result<ListResult> {
    let path = resource.collection();
    let answer = connection.send(Method::GET, &path, "").await?;
    let list = answer.success()?;
    let items = list["items"].as_array().context("no items")?;
    let objects = items.iter().filter_map(|item| match objects::name(item) {
        Ok(name) if !objects::is_load(name) => None,
        name => {
            Some(name.and_then(|name| Ok((name.to_owned(), ObservedObject::of(resource, item)?))))
        }
    });
    Ok(ListResult {
        revision: objects::revision(&list)?,
        objects: objects.collect::<Result<_>>()?,
    })
}
