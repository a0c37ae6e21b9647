//! What administrators read of Hive: the installation of a cluster, what Hive applied to it, and the sets of
//! objects that it applies.

use kube::{ResourceExt, api::DynamicObject};
use serde_json::{Value, json};

use super::{
    Hive,
    kinds::{CLUSTER_SYNC, SELECTOR_SYNC_SET, SYNC_SET},
};
use crate::cluster_api::{ApiError, Kind};

/// The name of every ClusterDeployment and of its ClusterSync.
const NAME: &str = "cluster";

/// Which sets of objects are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncSets<'a> {
    /// Those of the cluster in this namespace.
    OfNamespace(&'a str),
    /// Those for the clusters with a label.
    ForLabels,
}

impl SyncSets<'_> {
    fn kind(self) -> (&'static Kind, String) {
        match self {
            Self::OfNamespace(namespace) => (&SYNC_SET, namespace.to_owned()),
            Self::ForLabels => (&SELECTOR_SYNC_SET, String::new()),
        }
    }
}

impl Hive {
    /// The ClusterDeployment in a namespace.
    pub async fn cluster_deployment(&self, namespace: &str) -> Result<Option<Value>, ApiError> {
        let found = self
            .api()
            .get(&super::kinds::CLUSTER_DEPLOYMENT, namespace, NAME);
        Ok(found.await?.map(shown))
    }

    /// What Hive applied to the cluster of a namespace.
    pub async fn cluster_sync(&self, namespace: &str) -> Result<Option<Value>, ApiError> {
        let found = self.api().get(&CLUSTER_SYNC, namespace, NAME).await?;
        Ok(found.map(shown))
    }

    /// The sets with this label, `NAME=VALUE` or `NAME`; all if it is empty.
    pub async fn sync_sets(&self, sets: SyncSets<'_>, label: &str) -> Result<Vec<Value>, ApiError> {
        let (kind, namespace) = sets.kind();
        let found = self.api().list(kind, &namespace).await?;
        let selected = found.into_iter().filter(|it| has_label(it, label));
        Ok(selected.map(shown).collect())
    }

    /// One of the sets.
    pub async fn sync_set(
        &self,
        sets: SyncSets<'_>,
        name: &str,
    ) -> Result<Option<Value>, ApiError> {
        let (kind, namespace) = sets.kind();
        Ok(self.api().get(kind, &namespace, name).await?.map(shown))
    }
}

fn has_label(object: &DynamicObject, label: &str) -> bool {
    let (name, value) = label.split_once('=').unwrap_or((label, ""));
    let found = object.labels().get(name);
    label.is_empty() || found.is_some_and(|found| !label.contains('=') || found == value)
}

/// The object without what only programs need.
fn shown(mut object: DynamicObject) -> Value {
    object.metadata.managed_fields = None;
    json!(object)
}
