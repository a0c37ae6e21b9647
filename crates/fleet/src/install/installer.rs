//! What installs a cluster. Hive is one; another would be behind the same trait.

use futures::{FutureExt, future::BoxFuture};
use serde_json::Value;

use crate::{cloud_error::CloudError, cluster_api::ApiError};

/// What to install.
#[derive(Debug, Clone, Copy)]
pub struct InstallRequest<'a> {
    /// The cluster document, with its secrets.
    pub document: &'a Value,
    /// The subscription.
    pub subscription: &'a Value,
    /// What is known about the version.
    pub version: &'a Value,
    /// The location of the provider.
    pub location: &'a str,
    /// The domain of the provider, under which clusters get names.
    pub domain: &'a str,
}

/// How an installation stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installation {
    /// It runs, or waits for this.
    Running(String),
    /// The cluster is there.
    Complete,
    /// It failed, and will not be tried again.
    Failed(CloudError),
}

/// What an installation leaves behind: authorities, passwords, names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterGraph {
    /// The URL of the API.
    pub api_url: String,
    /// The certificate authority of the API, PEM.
    pub authority: String,
    /// The authority that signs administrators, PEM.
    pub signer_certificate: String,
    /// Its key, PEM.
    pub signer_key: String,
    /// The password of kubeadmin.
    pub kubeadmin_password: String,
    /// The URL of the console.
    pub console_url: String,
    /// The name of the infrastructure.
    pub infra_id: String,
}

/// Why an installer could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Its API failed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// What it left behind is incomplete.
    #[error("the installation left no {0}")]
    Incomplete(&'static str),
    /// It takes over no cluster that something else has installed.
    #[error("this installer adopts no clusters")]
    NoAdoption,
}

type Asked<'a, T> = BoxFuture<'a, Result<T, InstallError>>;

/// What installs a cluster. All calls may be repeated.
pub trait Installer: Send + Sync + std::fmt::Debug {
    /// The name of the place in which the installation of the document `id` happens.
    fn namespace(&self, id: &str) -> String;

    /// Makes the place of this name.
    fn create_namespace<'a>(&'a self, namespace: &'a str) -> Asked<'a, ()>;

    /// Starts the installation.
    fn install<'a>(&'a self, request: InstallRequest<'a>) -> Asked<'a, ()>;

    /// How the installation stands.
    fn installation<'a>(&'a self, namespace: &'a str) -> Asked<'a, Installation>;

    /// What a complete installation left behind.
    fn graph<'a>(&'a self, namespace: &'a str) -> Asked<'a, ClusterGraph>;

    /// Takes over a cluster that something else has installed. It changes nothing in the cluster.
    fn adopt<'a>(&'a self, request: InstallRequest<'a>) -> Asked<'a, ()> {
        let _ = request;
        async { Err(InstallError::NoAdoption) }.boxed()
    }

    /// Removes what leads from the installation to the request that caused it.
    fn reset_correlation<'a>(&'a self, namespace: &'a str) -> Asked<'a, ()>;

    /// Removes the installation, and with it what it installed. True once it is gone.
    fn delete<'a>(&'a self, namespace: &'a str) -> Asked<'a, bool>;
}
