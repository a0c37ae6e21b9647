//! Tracks when a namespace was last written to.

use std::{collections::HashMap, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream::SelectAll};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::{
        WatchStreamExt,
        watcher::{Config, watcher},
    },
};
use neap_kit::clock::{Clock, Uptime};
use parking_lot::Mutex;

use crate::api::KINDS;

/// Time to come to rest.
pub const REST_TIMEOUT: Duration = Duration::from_mins(3);

/// Watches everything that controllers write.
#[derive(Debug, Clone)]
pub struct WriteTracker {
    last: Arc<Mutex<HashMap<String, Uptime>>>,
    clock: Clock,
}

impl WriteTracker {
    pub fn new(clock: Clock) -> Self {
        Self {
            last: Arc::default(),
            clock,
        }
    }

    /// Watches until it is dropped.
    pub async fn run(self, client: Client) -> Result<()> {
        let mut all = SelectAll::new();
        for (kind, base, plural) in KINDS {
            let version = base.trim_start_matches("apis/").trim_start_matches("api/");
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let kind = GroupVersionKind::gvk(group, version, kind);
            let resource = ApiResource::from_gvk_with_plural(&kind, plural);
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            all.push(watcher(api, Config::default()).touched_objects().boxed());
        }
        while let Some(object) = all.try_next().await? {
            self.touch(&object.namespace().unwrap_or_default());
        }
        Ok(())
    }

    fn touch(&self, namespace: &str) {
        let now = self.clock.uptime();
        self.last.lock().insert(namespace.to_owned(), now);
    }

    /// Waits until nothing was written for `long`; fails if that never happens.
    pub async fn rest(&self, namespace: &str, long: Duration) -> Result<()> {
        self.touch(namespace);
        let begun = self.clock.uptime();
        loop {
            let last = self.last.lock().get(namespace).copied();
            let now = self.clock.uptime();
            ensure!(
                now.saturating_sub(begun) < REST_TIMEOUT,
                "it does not come to rest"
            );
            let since = last.map_or(long, |last| now.saturating_sub(last));
            let Some(left) = long.checked_sub(since).filter(|left| !left.is_zero()) else {
                return Ok(());
            };
            self.clock.sleep(left).await;
        }
    }
}
