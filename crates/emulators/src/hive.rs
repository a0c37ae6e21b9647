//! Hive: installs what ClusterDeployments describe, through a factory of clusters.
//!
//! The real Hive runs an installer that makes machines. This one asks a [`ClusterFactory`] for an API
//! server, fills it with what an installed OpenShift has, and reports as Hive does: conditions, metadata,
//! Secrets with credentials, `spec.installed`. Parts of a cluster settle after a time. Faults are options.
//!
//! It depends on `kit` alone; the program supplies the factory.

mod api;
mod controller;
mod decide;
mod guest;
mod sync;
mod sync_sets;
#[cfg(test)]
mod tests;

use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;

pub use self::{
    api::{ClusterDeployment, ClusterDeploymentSpec},
    controller::component,
    sync::sync_component,
};

/// The definitions that a cluster with Hive has.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    api::definitions()
}

/// What a cluster is called and has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSpec {
    /// Unique among clusters and the same for ever: the namespace of its ClusterDeployment.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its domain.
    pub domain: String,
    /// The version of OpenShift.
    pub version: String,
}

/// A cluster that runs.
#[derive(Clone)]
pub struct StartedCluster {
    /// The URL of its API.
    pub api_url: String,
    /// The authority of its API, PEM.
    pub authority: String,
    /// The authority that signs its administrators, PEM.
    pub signer_certificate: String,
    /// The key of that authority, PEM.
    pub signer_key: String,
    /// A client that may do everything.
    pub client: Client,
}

impl std::fmt::Debug for StartedCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StartedCluster")
            .field("api_url", &self.api_url)
            .finish_non_exhaustive()
    }
}

/// Makes clusters. All calls may be repeated.
pub trait ClusterFactory: Send + Sync {
    /// Starts the cluster, or returns it if it runs.
    fn start<'a>(&'a self, spec: &'a ClusterSpec) -> BoxFuture<'a, Result<StartedCluster, String>>;

    /// The cluster, if it runs.
    fn running<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Option<StartedCluster>>;

    /// Ends the cluster and removes what it stored.
    fn destroy<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), String>>;
}

/// How the emulated Hive behaves.
#[derive(Debug, Clone, Default)]
pub struct HiveOptions {
    /// The time until the parts of a new cluster have settled.
    pub settle: Duration,
    /// Clusters of these names fail with this reason of the condition ProvisionFailed.
    pub refuse: Vec<(String, String)>,
    /// Clusters of these names are never installed.
    pub hang: Vec<String>,
}
