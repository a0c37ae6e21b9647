//! Reads ClusterDeployments and does what is decided.

use std::{collections::HashSet, sync::Arc};

use aws_lc_rs::rand;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::ResourceExt;
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    watch::{Cache, WatchesStopped},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    ClusterDeployment, ClusterFactory, ClusterSpec, HiveOptions, StartedCluster,
    api::ClusterDeploymentStatus,
    decide::{FINALIZER, NextAction, condition, decide, until},
    guest,
};

/// The delay after the factory or a cluster failed.
const RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(2);

/// Hive, as a controller of ClusterDeployments.
pub fn component(
    context: &Context,
    name: &'static str,
    factory: Arc<dyn ClusterFactory>,
    options: HiveOptions,
) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, name);
    let deployments = builder.primary()?;
    let reconciler = HiveReconciler {
        deployments,
        tools: builder.tools(),
        factory,
        options,
        settled: Mutex::default(),
    };
    Ok(builder.build(reconciler, HiveReconciler::reconcile))
}

struct HiveReconciler {
    deployments: Cache<ClusterDeployment>,
    tools: Tools,
    factory: Arc<dyn ClusterFactory>,
    options: HiveOptions,
    /// The clusters whose parts have settled.
    settled: Mutex<HashSet<Key>>,
}

impl HiveReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(deployment) = self.deployments.get(&key) else {
            self.settled.lock().remove(&key);
            return Ok(Outcome::Gone);
        };
        let settled = self.settled.lock().contains(&key);
        let action = decide(&deployment, &self.options, settled);
        let retried = |why: String| {
            tracing::warn!(%key, why, "the cluster is tried again");
            Outcome::RequeueAfter(RETRY_DELAY)
        };
        Ok(match action {
            NextAction::Nothing => Outcome::Done,
            NextAction::AddFinalizer => {
                let mut changed = (*deployment).clone();
                changed.finalizers_mut().push(FINALIZER.to_owned());
                self.tools.writer.replace(&changed).await?;
                Outcome::Done
            }
            NextAction::Refuse(reason) => {
                self.refuse(&deployment, &reason).await?;
                Outcome::Done
            }
            NextAction::Deprovision => match self.factory.destroy(key.namespace()).await {
                Ok(()) => {
                    let mut changed = (*deployment).clone();
                    changed.finalizers_mut().retain(|it| it != FINALIZER);
                    self.tools.writer.replace(&changed).await?;
                    Outcome::Done
                }
                Err(why) => retried(why),
            },
            NextAction::Install => match self.start(&deployment).await {
                Ok(cluster) => {
                    self.finish(&key, &deployment, &cluster).await?;
                    Outcome::Done
                }
                Err(why) => retried(why),
            },
            NextAction::Settle(moment) => {
                let left = until(self.tools.clock.now(), moment);
                if !left.is_zero() {
                    return Ok(Outcome::RequeueAfter(left));
                }
                match self.settle(&deployment).await {
                    Ok(()) => {
                        self.settled.lock().insert(key);
                        Outcome::Done
                    }
                    Err(why) => retried(why),
                }
            }
            NextAction::Keep => match self.start(&deployment).await {
                Ok(_) => Outcome::Done,
                Err(why) => retried(why),
            },
        })
    }

    /// Starts the cluster, if it does not run in this process.
    async fn start(&self, deployment: &ClusterDeployment) -> Result<StartedCluster, String> {
        self.factory.start(&spec(deployment)).await
    }

    async fn refuse(&self, deployment: &ClusterDeployment, reason: &str) -> Result<(), Error> {
        let now = self.tools.clock.now();
        let is_told = deployment.status.as_ref().is_some_and(|status| {
            let mut conditions = status.conditions.iter();
            conditions.any(|it| it["type"] == "ProvisionFailed" && it["reason"] == reason)
        });
        if is_told {
            return Ok(());
        }
        let mut changed = deployment.clone();
        let message = "the installer of the emulated Hive was told to fail";
        let failed = condition("ProvisionFailed", true, reason, message, now);
        changed.status.get_or_insert_default().conditions = vec![failed];
        self.tools.writer.replace_status(&changed).await?;
        Ok(())
    }

    /// Reports a cluster that was started as installed: its objects first, `spec.installed` last.
    async fn finish(
        &self,
        key: &Key,
        deployment: &ClusterDeployment,
        cluster: &StartedCluster,
    ) -> Result<(), Error> {
        let spec = spec(deployment);
        let now = self.tools.clock.now();
        let clock = self.tools.clock;
        if let Err(why) = guest::fill(cluster, &spec, self.options.settle.is_zero(), clock).await {
            tracing::warn!(%key, why, "the objects of the cluster were not written; tried again");
            return Err(Error::Conflict(key.clone()));
        }
        let namespace = key.namespace();
        let graph = [
            ("api-url", &cluster.api_url),
            ("ca.crt", &cluster.authority),
            ("signer.crt", &cluster.signer_certificate),
            ("signer.key", &cluster.signer_key),
        ];
        self.ensure_secret(namespace, "cluster-graph", &graph)
            .await?;
        let password = password();
        let password = [
            ("username", &"kubeadmin".to_owned()),
            ("password", &password),
        ];
        self.ensure_secret(namespace, "cluster-admin-password", &password)
            .await?;
        let mut changed = deployment.clone();
        let status = changed.status.get_or_insert_default();
        *status = installed_status(&spec, cluster, now);
        let written = self.tools.writer.replace_status(&changed).await?;
        let mut changed = written;
        changed.spec.installed = true;
        changed.spec.cluster_metadata = Some(json!({
            "clusterID": spec.id,
            "infraID": format!("{}-hive", spec.name),
            "adminKubeconfigSecretRef": {"name": "cluster-graph"},
            "adminPasswordSecretRef": {"name": "cluster-admin-password"},
        }));
        self.tools.writer.replace(&changed).await?;
        if self.options.settle.is_zero() {
            self.settled.lock().insert(key.clone());
        }
        Ok(())
    }

    async fn ensure_secret(
        &self,
        namespace: &str,
        name: &str,
        data: &[(&str, &String)],
    ) -> Result<(), Error> {
        let data = data
            .iter()
            .map(|(name, value)| ((*name).to_owned(), ByteString(value.as_bytes().to_vec())));
        let mut secret = Secret {
            data: Some(data.collect()),
            ..Secret::default()
        };
        secret.metadata.namespace = Some(namespace.to_owned());
        secret.metadata.name = Some(name.to_owned());
        // One that exists is from an earlier attempt.
        self.tools.writer.create(&secret).await?;
        Ok(())
    }

    async fn settle(&self, deployment: &ClusterDeployment) -> Result<(), String> {
        let cluster = self.start(deployment).await?;
        guest::settle(&cluster, self.tools.clock).await
    }
}

fn spec(deployment: &ClusterDeployment) -> ClusterSpec {
    let annotation = |name: &str| deployment.annotations().get(name).cloned();
    ClusterSpec {
        id: deployment.namespace().unwrap_or_default(),
        name: deployment.spec.cluster_name.clone(),
        domain: deployment.spec.base_domain.clone(),
        version: annotation("hive.openshift.io/version").unwrap_or_default(),
    }
}

fn installed_status(
    spec: &ClusterSpec,
    cluster: &StartedCluster,
    now: jiff::Timestamp,
) -> ClusterDeploymentStatus {
    let conditions: Vec<Value> = vec![
        condition(
            "Provisioned",
            true,
            "Provisioned",
            "Cluster is provisioned",
            now,
        ),
        condition(
            "ControlPlaneCertificateNotFound",
            false,
            "ControlPlaneCertificatesFound",
            "Control plane certificates are present",
            now,
        ),
        condition(
            "Unreachable",
            false,
            "ClusterReachable",
            "cluster is reachable",
            now,
        ),
    ];
    ClusterDeploymentStatus {
        conditions,
        api_url: cluster.api_url.clone(),
        web_console_url: format!("https://console-openshift-console.apps.{}/", spec.domain),
        installed_timestamp: now.to_string(),
        ..ClusterDeploymentStatus::default()
    }
}

/// A password in the form that the installer makes: groups of five.
fn password() -> String {
    let mut bytes = [0; 15];
    // Without randomness the password is known; the cluster is one on this machine.
    let _ = rand::fill(&mut bytes);
    let text: String = STANDARD
        .encode(bytes)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { 'x' })
        .collect();
    [&text[..5], &text[5..10], &text[10..15], &text[15..20]].join("-")
}
