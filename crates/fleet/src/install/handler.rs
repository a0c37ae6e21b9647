//! Carries out steps.

mod error;
mod installation;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use neap_kit::{
    clock::Clock,
    operation::{Cause, Failure, Progress, StepAttempt, StepHandler},
    why::{Coded, chain},
};
use neap_store::{Commit, Document, Lease, Precondition, Scope, Store};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::error::StepError;
use super::{
    Installer,
    credentials::{CredentialError, KubeconfigUser, infra_id, ssh_key, storage_suffix},
    diagnosis::diagnosis,
    guest,
};
use crate::{
    cloud_error::{CloudError, CustomerError},
    cluster_api::{ApiError, ClusterApi, ClusterConnector},
    documents::{remove, set, text},
};

/// After this step another worker may continue.
pub const HAND_OVER: &str = "incrInstallPhase";

const SERVICE: KubeconfigUser = KubeconfigUser {
    name: "system:aro-service",
    valid: Duration::from_hours(24 * 3650),
};
const SRE: KubeconfigUser = KubeconfigUser {
    name: "system:aro-sre",
    valid: Duration::from_hours(24 * 3650),
};
const ADMIN: KubeconfigUser = KubeconfigUser {
    name: "system:admin",
    valid: Duration::from_hours(24 * 365),
};

/// What steps need.
#[derive(Debug, Clone)]
pub struct StepContext {
    /// The documents.
    pub store: Store,
    /// What installs clusters; none if no Hive is configured.
    pub installer: Option<Arc<dyn Installer>>,
    /// What leads to installed clusters.
    pub connector: Arc<dyn ClusterConnector>,
    /// What is known about the versions.
    pub versions: crate::catalogue::Catalogue,
    /// The location of the provider.
    pub location: String,
    /// The domain of the provider, under which clusters get names.
    pub domain: String,
    /// The clock.
    pub clock: Clock,
}

/// The steps of the work on one cluster.
#[derive(Debug)]
pub struct ClusterSteps {
    context: StepContext,
    lease: Lease,
    subscription: Value,
    /// Made by a step that runs again in every process.
    guest: Mutex<Option<ClusterApi>>,
    /// The error that customers are told, if a step has one.
    told: CustomerError,
    /// Ends the run so that another worker may continue.
    hand_over: CancellationToken,
}

type Step = Result<Progress, StepError>;

impl ClusterSteps {
    /// The steps under `lease`; `hand_over` is cancelled where another worker may continue.
    pub fn new(
        context: StepContext,
        lease: Lease,
        subscription: Value,
        hand_over: CancellationToken,
    ) -> Self {
        Self {
            context,
            lease,
            subscription,
            guest: Mutex::default(),
            told: CustomerError::default(),
            hand_over,
        }
    }

    /// The error that customers are told about the failure of a step.
    pub fn told(&self) -> &CustomerError {
        &self.told
    }

    async fn document(&self) -> Result<Document, StepError> {
        let key = &self.lease.key;
        let found = self
            .context
            .store
            .get(Scope::Partition(&key.partition), key)
            .await?;
        found.ok_or_else(|| neap_store::Error::Missing(key.to_string()).into())
    }

    /// The document with its secrets.
    async fn revealed(&self) -> Result<Value, StepError> {
        Ok(self.context.store.reveal(&self.document().await?)?)
    }

    /// Changes the document, in the version that was read and while the lease holds.
    async fn patch(&self, change: impl Fn(&mut Value) + Send + Sync) -> Result<(), StepError> {
        loop {
            let document = self.document().await?;
            let mut body = document.body.clone();
            change(&mut body);
            if body == document.body {
                return Ok(());
            }
            let precondition = Precondition::EtagAndLease(document.etag, self.lease.clone());
            // The keys that are unique depend on what steps do not change.
            let write = neap_store::Write::Put {
                key: self.lease.key.clone(),
                precondition,
                unique: crate::documents::unique_keys(&body),
                body,
                ttl: None,
                queue: neap_store::QueueChange::Keep,
            };
            match self
                .context
                .store
                .commit(Commit::default().with(write))
                .await
            {
                Ok(_) => return Ok(()),
                Err(neap_store::Error::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sets a property, unless it is set.
    async fn set_once(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Value, CredentialError>,
    ) -> Step {
        let pointer = format!("/openShiftCluster/properties/{name}");
        let document = self.document().await?;
        if document.body.pointer(&pointer).is_none_or(Value::is_null) {
            let value = make()?;
            self.patch(|body| {
                if body.pointer(&pointer).is_none_or(Value::is_null) {
                    set(body, &pointer, value.clone());
                }
            })
            .await?;
        }
        Ok(Progress::Done)
    }

    fn installer(&self) -> Result<&dyn Installer, StepError> {
        self.context
            .installer
            .as_deref()
            .ok_or(StepError::NoInstaller)
    }

    async fn namespace(&self) -> Result<String, StepError> {
        let document = self.document().await?;
        let pointer = "/openShiftCluster/properties/hiveProfile/namespace";
        Ok(text(&document.body, pointer).to_owned())
    }

    fn guest(&self) -> Result<ClusterApi, StepError> {
        let guest = self.guest.lock().clone();
        let missing = || ApiError::Kubeconfig("no client was made of it".to_owned());
        Ok(guest.ok_or_else(missing)?)
    }

    async fn run(&self, attempt: &StepAttempt) -> Step {
        match &*attempt.step {
            "ensureInfraID" | "ensureSSHKey" | "ensureStorageSuffix" | "populateMTUSize" => {
                self.generate(&attempt.step).await
            }
            "hiveCreateNamespace" => self.create_namespace().await,
            "runHiveInstaller" => self.install().await,
            "hiveEnsureResources" => self.adopt().await,
            "hiveClusterInstallationComplete" => self.installation().await,
            "generateKubeconfigs" => self.generate_kubeconfigs().await,
            "hiveResetCorrelationData" => {
                let namespace = self.namespace().await?;
                self.installer()?.reset_correlation(&namespace).await?;
                Ok(Progress::Done)
            }
            "ensureBillingRecord" => self.ensure_billing().await,
            "initializeKubernetesClients" => self.initialize_clients().await,
            "incrInstallPhase" => {
                self.patch(|body| {
                    let pointer = "/openShiftCluster/properties/install/phase";
                    set(body, pointer, "RemoveBootstrap".into());
                })
                .await?;
                self.hand_over.cancel();
                Ok(Progress::Done)
            }
            "finishInstallation" => {
                self.patch(|body| remove(body, "/openShiftCluster/properties/install"))
                    .await?;
                Ok(Progress::Done)
            }
            "updateClusterData" => self.update_cluster_data().await,
            "fixUserAdminKubeconfig" => self.fix_kubeconfig().await,
            "updateOpenShiftSecret" => self.update_secret().await,
            "configureDefaultStorageClass" => {
                let document = self.document().await?;
                let pointer = "/openShiftCluster/properties/masterProfile/diskEncryptionSetId";
                let set = text(&document.body, pointer);
                Ok(guest::default_storage_class(&self.guest()?, set).await?)
            }
            // Clusters are made with OVNKubernetes, and no version of the API says otherwise.
            "reconcileSoftwareDefinedNetwork" => {
                self.patch(|body| {
                    let pointer =
                        "/openShiftCluster/properties/networkProfile/softwareDefinedNetwork";
                    set(body, pointer, "OVNKubernetes".into());
                })
                .await?;
                Ok(Progress::Done)
            }
            "hiveDeleteNamespace" => self.delete_namespace().await.map(|_| Progress::Done),
            "hiveNamespaceGone" => Ok(if self.delete_namespace().await? {
                Progress::Done
            } else {
                Progress::NotYet("Hive removes the cluster and its namespace".to_owned())
            }),
            "deleteBillingRecord" => self.delete_billing().await,
            step => self.run_in_guest(step).await,
        }
    }

    async fn run_in_guest(&self, step: &str) -> Step {
        let guest = self.guest()?;
        Ok(match step {
            "apiServersReady" => guest::api_servers_ready(&guest).await?,
            "minimumWorkerNodesReady" => {
                let ready = guest::workers_ready(&guest).await?;
                ready.map_err(|message| {
                    StepError::Told(CloudError::bad_request("QuotaExceeded", "", message))
                })?
            }
            "operatorConsoleExists" => guest::console_exists(&guest).await?,
            "updateConsoleBranding" => guest::brand_console(&guest).await?,
            "operatorConsoleReady" => guest::console_ready(&guest).await?,
            "disableSamples" | "disableOperatorHubSources" if self.has_pull_secret().await? => {
                Progress::Done
            }
            "disableSamples" => guest::disable_samples(&guest).await?,
            "disableOperatorHubSources" => guest::disable_operator_hub(&guest).await?,
            "disableUpdates" => guest::disable_updates(&guest).await?,
            "clusterVersionReady" => guest::version_ready(&guest).await?,
            "ingressControllerReady" => guest::ingress_ready(&guest).await?,
            "clusterOperatorsHaveSettled" => guest::cluster_operators_settled(&guest).await?,
            unknown => return Err(StepError::Unknown(unknown.to_owned())),
        })
    }

    async fn has_pull_secret(&self) -> Result<bool, StepError> {
        // An empty one is sealed like any other.
        let document = self.revealed().await?;
        let pointer = "/openShiftCluster/properties/clusterProfile/pullSecret";
        Ok(!text(&document, pointer).is_empty())
    }

    async fn generate(&self, step: &str) -> Step {
        match step {
            "ensureInfraID" => {
                let document = self.document().await?;
                let name = text(&document.body, "/openShiftCluster/name").to_owned();
                self.set_once("infraId", || infra_id(&name).map(Value::from))
                    .await
            }
            "ensureSSHKey" => self.set_once("sshKey", || ssh_key().map(Value::from)).await,
            "ensureStorageSuffix" => {
                let document = self.document().await?;
                let existing = "/openShiftCluster/properties/storageSuffix";
                let suffix = match text(&document.body, existing) {
                    "" => storage_suffix()?,
                    suffix => suffix.to_owned(),
                };
                self.patch(|body| {
                    let properties = &mut body["openShiftCluster"]["properties"];
                    properties["storageSuffix"] = suffix.clone().into();
                    properties["imageRegistryStorageAccountName"] =
                        format!("imageregistry{suffix}").into();
                })
                .await?;
                Ok(Progress::Done)
            }
            _ => {
                let features = self
                    .subscription
                    .pointer("/subscription/properties/registeredFeatures");
                let is_large = features
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .any(|it| {
                        it["name"] == "Microsoft.RedHatOpenShift/MTU3900"
                            && it["state"] == "Registered"
                    });
                let size = if is_large { 3900 } else { 1500 };
                self.set_once("networkProfile/mtuSize", || Ok(json!(size)))
                    .await
            }
        }
    }
}

impl StepHandler for ClusterSteps {
    async fn attempt(&self, attempt: &StepAttempt) -> Result<Progress, Failure> {
        self.run(attempt).await.map_err(|error| {
            if let StepError::Told(told) = &error {
                self.told.set(told.clone());
            }
            Failure {
                cause: Cause::coded(error.code(), chain(&error)),
                retryable: error.is_retryable(),
            }
        })
    }

    async fn on_failure(&self, _: &str, _: &Cause) -> Option<String> {
        let guest = self.guest.lock().clone();
        let namespace = self.namespace().await.unwrap_or_default();
        let installer = self.context.installer.as_deref();
        let installer = installer.filter(|_| !namespace.is_empty());
        diagnosis(installer.map(|it| (it, &*namespace)), guest.as_ref()).await
    }

    /// A client may have been made of a kubeconfig that has expired since.
    async fn refresh(&self, _: &StepAttempt) -> Result<(), Failure> {
        if self.guest.lock().is_some() {
            // A failure is that of the attempt which follows.
            let _ = self.initialize_clients().await;
        }
        Ok(())
    }
}
