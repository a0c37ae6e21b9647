//! A Kubernetes API that steps read and write: that of Hive, or of an installed cluster.

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use neap_kit::{
    apply::{self, DesiredObject, PlannedChange, ResourceKind, Writer, plan},
    clock::Clock,
    key::Key,
    lease::Leadership,
};
use serde_json::Value;

/// The field manager of all writes.
const MANAGER: &str = "neap-fleet";
/// The time in which a cluster answers.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The largest list that is read.
const MAX_LIST: u32 = 500;

/// Why a cluster could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// There is no usable kubeconfig.
    #[error("the kubeconfig of the cluster cannot be used: {0}")]
    Kubeconfig(String),
    /// A read failed.
    #[error("the API of the cluster could not be read")]
    Read(#[source] Box<kube::Error>),
    /// A write failed.
    #[error("the API of the cluster refused a write")]
    Write(#[from] apply::Error),
}

/// A kind, as steps name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Group and version.
    pub api_version: &'static str,
    /// The name of the kind.
    pub kind: &'static str,
    /// The plural.
    pub plural: &'static str,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

impl Kind {
    /// A kind of objects in namespaces.
    pub const fn namespaced(
        api_version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            api_version,
            kind,
            plural,
            namespaced: true,
        }
    }

    /// A kind of objects of the cluster.
    pub const fn cluster(
        api_version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            api_version,
            kind,
            plural,
            namespaced: false,
        }
    }

    fn resource(&self) -> ResourceKind {
        let (group, version) = self
            .api_version
            .split_once('/')
            .unwrap_or(("", self.api_version));
        ResourceKind {
            resource: ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                api_version: self.api_version.to_owned(),
                kind: self.kind.to_owned(),
                plural: self.plural.to_owned(),
            },
            namespaced: self.namespaced,
        }
    }
}

/// Makes the client of an installed cluster from its kubeconfig.
pub trait ClusterConnector: Send + Sync + std::fmt::Debug {
    /// The API that the kubeconfig leads to.
    fn connect<'a>(
        &'a self,
        kubeconfig: &'a str,
        clock: Clock,
    ) -> BoxFuture<'a, Result<ClusterApi, ApiError>>;
}

/// Connects over the network, as the kubeconfig says.
#[derive(Debug, Clone, Copy, Default)]
pub struct NetworkConnector;

impl ClusterConnector for NetworkConnector {
    fn connect<'a>(
        &'a self,
        kubeconfig: &'a str,
        clock: Clock,
    ) -> BoxFuture<'a, Result<ClusterApi, ApiError>> {
        ClusterApi::from_kubeconfig(kubeconfig, clock).boxed()
    }
}

/// A Kubernetes API that steps read and write. Cheap to clone.
#[derive(Clone)]
pub struct ClusterApi {
    client: Client,
    writer: Writer,
}

impl std::fmt::Debug for ClusterApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterApi").finish_non_exhaustive()
    }
}

impl ClusterApi {
    /// The API that `client` calls. Leases of documents fence the writes, so there is no election.
    pub fn new(client: Client, clock: Clock) -> Self {
        let leadership = Leadership::without_election(clock);
        let writer = Writer::new(client.clone(), MANAGER, leadership, clock);
        Self { client, writer }
    }

    /// The API that a kubeconfig leads to.
    pub async fn from_kubeconfig(text: &str, clock: Clock) -> Result<Self, ApiError> {
        // The parser's message could repeat a line of the kubeconfig.
        let unusable = |what: &str| ApiError::Kubeconfig(what.to_owned());
        let kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| unusable("it cannot be read"))?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let mut config = config.map_err(|_| unusable("it names no usable cluster and user"))?;
        config.connect_timeout = Some(TIMEOUT);
        config.read_timeout = Some(TIMEOUT);
        let client =
            Client::try_from(config).map_err(|_| unusable("its certificates cannot be used"))?;
        Ok(Self::new(client, clock))
    }

    fn api(&self, kind: &Kind, namespace: &str) -> Api<DynamicObject> {
        let resource = kind.resource().resource;
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }

    /// The object, if there is one.
    pub async fn get(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<DynamicObject>, ApiError> {
        let found = self.api(kind, namespace).get_opt(name).await;
        found.map_err(|error| ApiError::Read(Box::new(error)))
    }

    /// The objects of a kind.
    pub async fn list(&self, kind: &Kind, namespace: &str) -> Result<Vec<DynamicObject>, ApiError> {
        let parameters = ListParams::default().limit(MAX_LIST);
        let found = self.api(kind, namespace).list(&parameters).await;
        let found = found.map_err(|error| ApiError::Read(Box::new(error)))?;
        Ok(found.items)
    }

    /// Creates the object, or changes the fields that differ.
    pub async fn ensure(&self, kind: &Kind, object: Value) -> Result<(), ApiError> {
        let desired = DesiredObject {
            kind: kind.resource(),
            object,
        };
        let key = desired.key();
        let live = self.get(kind, key.namespace(), key.name()).await?;
        let live: Vec<_> = live.into_iter().map(|it| (kind.resource(), it)).collect();
        let changes = plan(&[desired], &live);
        self.writer.execute(changes).await?;
        Ok(())
    }

    /// Merges fields into an object that others own, in the version that was read.
    pub async fn merge(
        &self,
        kind: &Kind,
        seen: &DynamicObject,
        patch: Value,
    ) -> Result<(), ApiError> {
        let resource = kind.resource();
        self.writer
            .merge(&resource, &seen.metadata, None, patch)
            .await?;
        Ok(())
    }

    /// Deletes the object, if there is one. True once it is gone.
    pub async fn delete(&self, kind: &Kind, namespace: &str, name: &str) -> Result<bool, ApiError> {
        let Some(found) = self.get(kind, namespace, name).await? else {
            return Ok(true);
        };
        if found.metadata.deletion_timestamp.is_some() {
            return Ok(false);
        }
        let change = PlannedChange::DeleteByName {
            kind: kind.resource(),
            key: Key::new(namespace, &found.name_any()),
            reason: "the cluster is deleted".to_owned(),
        };
        self.writer.execute_change(change).await?;
        Ok(false)
    }
}

/// The value of a condition of an object.
pub fn condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<&'a str> {
    find_condition(object, kind)?["status"].as_str()
}

/// A condition of an object.
pub fn find_condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
    let conditions = object.data["status"]["conditions"].as_array()?;
    conditions.iter().find(|it| it["type"] == kind)
}
