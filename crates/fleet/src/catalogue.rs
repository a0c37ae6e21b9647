//! The versions that can be installed and the role sets of workload identities, as they are in documents.

use std::{sync::Arc, time::Duration};

use neap_kit::{clock::Clock, manager::Component, why::chain};
use neap_store::{Cursor, Error, Store};
use parking_lot::RwLock;
use serde_json::{Value, json};

use crate::{
    cloud_error::CloudError,
    documents::{ROLE_SETS, VERSIONS, text},
};

/// How often the change feeds are read.
const FEED_INTERVAL: Duration = Duration::from_secs(2);
/// The number of changes that are read at once.
const FEED_PAGE: usize = 50;

/// The newest versions and role sets. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Catalogue {
    store: Store,
    versions: Arc<RwLock<Feed>>,
    role_sets: Arc<RwLock<Feed>>,
}

#[derive(Debug, Clone, Default)]
struct Feed {
    cursor: Cursor,
    documents: Vec<(String, Value)>,
    is_read: bool,
}

impl Catalogue {
    /// An empty catalogue, which [`Self::component`] or [`Self::read`] fills.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            versions: Arc::default(),
            role_sets: Arc::default(),
        }
    }

    /// Keeps the catalogue up to date.
    pub fn component(&self, name: &'static str, clock: Clock) -> Component {
        let (catalogue, readiness) = (self.clone(), self.clone());
        Component::new(name, move |stop| async move {
            loop {
                if let Err(error) = catalogue.read().await {
                    let why = chain(&error);
                    tracing::warn!(why, "the versions were not read; the last ones are used");
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = clock.sleep(FEED_INTERVAL) => {}
                }
            }
        })
        .ready_when(move || (!readiness.is_read()).then(|| "versions and role sets".to_owned()))
    }

    /// Whether both feeds were read at least once.
    pub fn is_read(&self) -> bool {
        self.versions.read().is_read && self.role_sets.read().is_read
    }

    /// Reads all changes.
    pub async fn read(&self) -> Result<(), Error> {
        for (collection, feed) in [(VERSIONS, &self.versions), (ROLE_SETS, &self.role_sets)] {
            let last = feed.read().clone();
            let read = match self.read_feed(collection, last).await {
                // The database forgot, or was restored from a backup: all documents are read again, and
                // the last ones are used until then.
                Err(Error::FeedExpired) => self.read_feed(collection, Feed::default()).await,
                read => read,
            };
            *feed.write() = read?;
        }
        Ok(())
    }

    async fn read_feed(&self, collection: &'static str, mut feed: Feed) -> Result<Feed, Error> {
        loop {
            let changes = self
                .store
                .changes(collection, feed.cursor, FEED_PAGE)
                .await?;
            let is_last = changes.changes.len() < FEED_PAGE;
            for change in changes.changes {
                feed.documents.retain(|(id, _)| *id != change.key.id);
                if let Some(document) = change.document {
                    feed.documents.push((change.key.id, document.body));
                }
            }
            feed.cursor = changes.cursor;
            if is_last {
                feed.is_read = true;
                return Ok(feed);
            }
        }
    }

    /// The versions that can be installed, in order, in the form of clients.
    pub fn versions(&self, subscription: &str, location: &str) -> Vec<Value> {
        let prefix = format!(
            "/subscriptions/{subscription}/providers/Microsoft.RedHatOpenShift/locations/{location}/openShiftVersions/"
        );
        let mut versions: Vec<_> = self.enabled().into_iter().map(|(name, _)| name).collect();
        versions.sort_by_key(|name| semver::Version::parse(name).ok());
        let shown = versions.into_iter().map(|version| {
            json!({
                "id": format!("{prefix}{version}"),
                "name": version,
                "type": "Microsoft.RedHatOpenShift/locations/openShiftVersions",
                "properties": {"version": version},
            })
        });
        shown.collect()
    }

    /// Names and documents of the enabled versions.
    fn enabled(&self) -> Vec<(String, Value)> {
        let versions = self.versions.read();
        let enabled = versions.documents.iter().filter(|(_, document)| {
            let version = &document["openShiftVersion"];
            version["properties"]["enabled"] == true && version["deleting"] != true
        });
        enabled
            .map(|(_, document)| {
                let properties = document["openShiftVersion"]["properties"].clone();
                (text(&properties, "/version").to_owned(), properties)
            })
            .collect()
    }

    /// The version that is installed if a client names none.
    pub fn default_version(&self) -> Option<String> {
        let enabled = self.enabled();
        let default = enabled.iter().find(|(_, it)| it["default"] == true);
        default.map(|(name, _)| name.clone())
    }

    /// What is known about a version that can be installed.
    pub fn version(&self, name: &str) -> Option<Value> {
        let enabled = self.enabled();
        let found = enabled.into_iter().find(|(version, _)| version == name);
        found.map(|(_, properties)| properties)
    }

    /// The role sets, in the form of clients.
    pub fn role_sets(&self, subscription: &str, location: &str) -> Vec<Value> {
        let prefix = format!(
            "/subscriptions/{subscription}/providers/Microsoft.RedHatOpenShift/locations/{location}/platformWorkloadIdentityRoleSets/"
        );
        let sets = self.role_sets.read();
        let shown = sets.documents.iter().map(|(_, document)| {
            let properties = &document["platformWorkloadIdentityRoleSet"]["properties"];
            let minor = text(properties, "/openShiftVersion");
            let roles = properties["platformWorkloadIdentityRoles"].as_array();
            let roles: Vec<_> = roles
                .into_iter()
                .flatten()
                .map(|role| {
                    json!({
                        "operatorName": role["operatorName"],
                        "roleDefinitionName": role["roleDefinitionName"],
                        "roleDefinitionId": role["roleDefinitionId"],
                    })
                })
                .collect();
            json!({
                "id": format!("{prefix}{minor}"),
                "name": minor,
                "type": "Microsoft.RedHatOpenShift/locations/platformWorkloadIdentityRoleSets",
                "properties": {
                    "openShiftVersion": minor,
                    "platformWorkloadIdentityRoles": roles,
                },
            })
        });
        shown.collect()
    }

    /// Refuses a version that cannot be installed.
    pub fn check_version(&self, version: &str) -> Result<(), CloudError> {
        if semver::Version::parse(version).is_ok() && self.version(version).is_some() {
            return Ok(());
        }
        let message = format!(
            "The requested OpenShift version '{version}' is invalid: list the versions that can be installed with GET …/locations/LOCATION/openShiftVersions."
        );
        Err(CloudError::invalid(
            "properties.clusterProfile.version",
            message,
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::{FutureExt, future::BoxFuture};
    use neap_store::{CallObserver, Commit, StoreCall};

    use super::*;
    use crate::{documents::region_document, fixtures};

    /// Refuses the positions of so many reads, as a database does that was restored from a backup.
    struct Restored(AtomicUsize);

    impl CallObserver for Restored {
        fn before(&self, call: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
            let left = self.0.load(Ordering::Relaxed);
            let is_refused = call.name == "changes" && left > 0;
            self.0.fetch_sub(usize::from(is_refused), Ordering::Relaxed);
            let answer = if is_refused {
                Err(Error::FeedExpired)
            } else {
                Ok(())
            };
            async move { answer }.boxed()
        }

        fn after(&self, _: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
            async { Ok(()) }.boxed()
        }
    }

    #[tokio::test]
    async fn the_last_versions_are_used_until_all_are_read_anew() {
        let restored = Arc::new(Restored(AtomicUsize::new(0)));
        let store = fixtures::store(Clock::system());
        let put = |version: &str| {
            let document = fixtures::version_body(version, version == "4.19.9");
            let commit = Commit::default();
            store.commit(commit.create(region_document(VERSIONS, version), document))
        };
        put("4.19.9").await.unwrap();
        let catalogue = Catalogue::new(store.clone().observed_by(restored.clone()));
        catalogue.read().await.unwrap();
        // The feed cannot be read anew either.
        put("4.20.1").await.unwrap();
        restored.0.store(2, Ordering::Relaxed);
        catalogue.read().await.unwrap_err();
        assert_eq!(catalogue.default_version().as_deref(), Some("4.19.9"));
        assert!(catalogue.is_read());
        restored.0.store(1, Ordering::Relaxed);
        catalogue.read().await.unwrap();
        assert!(catalogue.version("4.20.1").is_some());
        assert_eq!(
            catalogue.versions("s", "local").len(),
            2,
            "each is known once"
        );
    }
}
