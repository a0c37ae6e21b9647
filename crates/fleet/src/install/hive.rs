//! Hive: a ClusterDeployment in a namespace of its own for each cluster.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::FutureExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{
    ClusterGraph, InstallError, InstallRequest, Installation, Installer,
    kinds::{CLUSTER_DEPLOYMENT, NAMESPACE, SECRET},
};
use crate::{
    cloud_error::CloudError,
    cluster_api::{ClusterApi, condition, find_condition},
    documents::text,
    resource_id::ClusterId,
};

/// The name of every ClusterDeployment.
const NAME: &str = "cluster";
/// The Secret with the kubeconfig of an adopted cluster.
const ADOPTED_KUBECONFIG: &str = "aro-service-kubeconfig-secret";
/// Annotations that lead to the request, removed at the end of the installation.
const CORRELATION: [&str; 3] = [
    "hive.openshift.io/correlation-id",
    "hive.openshift.io/client-request-id",
    "hive.openshift.io/request-id",
];

/// Why Hive failed, as customers can act on it. The first that fits is told.
const REASONS: [(&str, &str, &str); 5] = [
    (
        "AzureKeyBasedAuthenticationNotPermitted",
        "DeploymentFailed",
        "Deployment failed. The storage account allows no authentication with keys: a policy of the subscription forbids it.",
    ),
    (
        "AzureRequestDisallowedByPolicy",
        "RequestDisallowedByPolicy",
        "Deployment failed. A policy of the subscription disallowed a resource: exempt the resource group of the cluster.",
    ),
    (
        "AzureInvalidTemplateDeployment",
        "DeploymentFailed",
        "Deployment failed. The cloud refused the template of the machines: its quota or SKUs may not suffice.",
    ),
    (
        "AzureZonalAllocationFailed",
        "DeploymentFailed",
        "Deployment failed. The zone has no capacity for the size of the machines: choose another size or try later.",
    ),
    (
        "AzureOSProvisioningTimedOut",
        "DeploymentFailed",
        "Deployment failed. A machine did not start in time: delete the cluster and create it again.",
    ),
];

/// Installs clusters through Hive.
#[derive(Debug, Clone)]
pub struct Hive {
    api: ClusterApi,
}

impl Hive {
    /// Hive behind this API.
    pub fn new(api: ClusterApi) -> Self {
        Self { api }
    }

    pub(super) fn api(&self) -> &ClusterApi {
        &self.api
    }

    async fn deployment(&self, namespace: &str) -> Result<Option<DynamicObject>, InstallError> {
        Ok(self.api.get(&CLUSTER_DEPLOYMENT, namespace, NAME).await?)
    }

    async fn ensure_secret(
        &self,
        namespace: &str,
        name: &str,
        data: Value,
    ) -> Result<(), InstallError> {
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"namespace": namespace, "name": name},
            "data": data,
        });
        Ok(self.api.ensure(&SECRET, secret).await?)
    }

    async fn start(&self, request: InstallRequest<'_>) -> Result<(), InstallError> {
        let (document, namespace) = (request.document, namespace_of(request.document));
        for (name, data) in secrets(&request) {
            self.ensure_secret(&namespace, name, data).await?;
        }
        if self.deployment(&namespace).await?.is_some() {
            // Hive owns most of it once it has begun.
            return Ok(());
        }
        let deployment = deployment(&request, &namespace);
        self.api.ensure(&CLUSTER_DEPLOYMENT, deployment).await?;
        tracing::info!(
            namespace,
            cluster = text(document, "/key"),
            "the installation has begun"
        );
        Ok(())
    }

    async fn take_over(&self, request: InstallRequest<'_>) -> Result<(), InstallError> {
        let document = request.document;
        let namespace = namespace_of(document);
        let kubeconfig = text(
            document,
            "/openShiftCluster/properties/aroServiceKubeconfig",
        );
        let data = json!({"kubeconfig": STANDARD.encode(kubeconfig)});
        self.ensure_secret(&namespace, ADOPTED_KUBECONFIG, data)
            .await?;
        let deployment = adopted(&request, &namespace);
        Ok(self.api.ensure(&CLUSTER_DEPLOYMENT, deployment).await?)
    }

    async fn read_graph(&self, namespace: &str) -> Result<ClusterGraph, InstallError> {
        let deployment = self.deployment(namespace).await?;
        let deployment = deployment.ok_or(InstallError::Incomplete("ClusterDeployment"))?;
        let metadata = &deployment.data["spec"]["clusterMetadata"];
        let secret = |pointer: &'static str| {
            let name = text(metadata, pointer).to_owned();
            async move {
                let found = self.api.get(&SECRET, namespace, &name).await?;
                found.ok_or(InstallError::Incomplete("Secret of its credentials"))
            }
        };
        let password = secret("/adminPasswordSecretRef/name").await?;
        // What the installer persists of its own state; its name is fixed.
        let graph = self.api.get(&SECRET, namespace, "cluster-graph").await?;
        let graph = graph.ok_or(InstallError::Incomplete("state of the installer"))?;
        let field = |secret: &DynamicObject, name: &'static str| {
            let found = secret.data["data"][name].as_str();
            let decoded = found.and_then(|it| STANDARD.decode(it).ok());
            let found = decoded.and_then(|it| String::from_utf8(it).ok());
            found.ok_or(InstallError::Incomplete(name))
        };
        Ok(ClusterGraph {
            api_url: field(&graph, "api-url")?,
            authority: field(&graph, "ca.crt")?,
            signer_certificate: field(&graph, "signer.crt")?,
            signer_key: field(&graph, "signer.key")?,
            kubeadmin_password: field(&password, "password")?,
            console_url: text(&deployment.data, "/status/webConsoleURL").to_owned(),
            infra_id: text(metadata, "/infraID").to_owned(),
        })
    }

    async fn reset(&self, namespace: &str) -> Result<(), InstallError> {
        let Some(deployment) = self.deployment(namespace).await? else {
            return Ok(());
        };
        let annotations = deployment.metadata.annotations.clone().unwrap_or_default();
        let found: Vec<_> = CORRELATION
            .iter()
            .filter(|name| annotations.contains_key(**name))
            .collect();
        if found.is_empty() {
            return Ok(());
        }
        let removed = found
            .into_iter()
            .map(|name| ((*name).to_owned(), Value::Null));
        let patch = json!({"metadata": {"annotations": Value::Object(removed.collect())}});
        self.api
            .merge(&CLUSTER_DEPLOYMENT, &deployment, patch)
            .await?;
        Ok(())
    }

    async fn remove(&self, namespace: &str) -> Result<bool, InstallError> {
        // The deployment first: Hive removes what it installed before the namespace can go.
        if !self
            .api
            .delete(&CLUSTER_DEPLOYMENT, namespace, NAME)
            .await?
        {
            return Ok(false);
        }
        Ok(self.api.delete(&NAMESPACE, "", namespace).await?)
    }
}

impl Installer for Hive {
    fn namespace(&self, id: &str) -> String {
        format!("aro-{id}")
    }

    fn create_namespace<'a>(
        &'a self,
        namespace: &'a str,
    ) -> futures::future::BoxFuture<'a, Result<(), InstallError>> {
        async move {
            let object = json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": namespace},
            });
            Ok(self.api.ensure(&NAMESPACE, object).await?)
        }
        .boxed()
    }

    fn install<'a>(
        &'a self,
        request: InstallRequest<'a>,
    ) -> futures::future::BoxFuture<'a, Result<(), InstallError>> {
        self.start(request).boxed()
    }

    fn adopt<'a>(
        &'a self,
        request: InstallRequest<'a>,
    ) -> futures::future::BoxFuture<'a, Result<(), InstallError>> {
        self.take_over(request).boxed()
    }

    fn installation<'a>(
        &'a self,
        namespace: &'a str,
    ) -> futures::future::BoxFuture<'a, Result<Installation, InstallError>> {
        async move {
            let deployment = self.deployment(namespace).await?;
            Ok(deployment.map_or_else(
                || Installation::Running("the ClusterDeployment does not exist yet".to_owned()),
                |deployment| state(&deployment),
            ))
        }
        .boxed()
    }

    fn graph<'a>(
        &'a self,
        namespace: &'a str,
    ) -> futures::future::BoxFuture<'a, Result<ClusterGraph, InstallError>> {
        self.read_graph(namespace).boxed()
    }

    fn reset_correlation<'a>(
        &'a self,
        namespace: &'a str,
    ) -> futures::future::BoxFuture<'a, Result<(), InstallError>> {
        self.reset(namespace).boxed()
    }

    fn delete<'a>(
        &'a self,
        namespace: &'a str,
    ) -> futures::future::BoxFuture<'a, Result<bool, InstallError>> {
        self.remove(namespace).boxed()
    }
}

fn namespace_of(document: &Value) -> String {
    text(
        document,
        "/openShiftCluster/properties/hiveProfile/namespace",
    )
    .to_owned()
}

/// How the installation of a ClusterDeployment stands. Pure.
pub(super) fn state(deployment: &DynamicObject) -> Installation {
    if deployment.data["spec"]["installed"] == true {
        return Installation::Complete;
    }
    if condition(deployment, "ProvisionFailed") == Some("True") {
        let failed = find_condition(deployment, "ProvisionFailed");
        let reason = failed.map_or("", |it| text(it, "/reason"));
        let message = failed.map_or("", |it| text(it, "/message"));
        let known = REASONS.iter().find(|(name, ..)| *name == reason);
        let error = match known {
            Some((reason, code, told)) => {
                CloudError::bad_request(code, "", *told).with_detail(reason, "", message)
            }
            None => CloudError::new(
                500,
                "DeploymentFailed",
                "",
                "Deployment failed. Delete the cluster and create it again; if it fails again, open a support ticket.",
            )
            .with_detail(if reason.is_empty() { "Unknown" } else { reason }, "", message),
        };
        return Installation::Failed(error);
    }
    let waits = find_condition(deployment, "Provisioned");
    let message = waits.map_or("", |it| text(it, "/message"));
    Installation::Running(if message.is_empty() {
        "Hive has not begun yet".to_owned()
    } else {
        message.to_owned()
    })
}

/// The variables of the environment of the installer, which are in a Secret.
fn environment(request: &InstallRequest<'_>) -> Vec<(&'static str, String)> {
    vec![("ARO_LOCATION", request.location.to_owned())]
}

/// The Secret with those variables.
const ENVIRONMENT: &str = "aro-env-secret";

/// The variables as a ClusterDeployment names them.
fn installer_env(request: &InstallRequest<'_>) -> Vec<Value> {
    let own = json!({"name": "ARO_UUID", "value": text(request.document, "/id")});
    let of_secret = environment(request).into_iter().map(|(name, _)| {
        let key = json!({"name": ENVIRONMENT, "key": name});
        json!({"name": name, "valueFrom": {"secretKeyRef": key}})
    });
    std::iter::once(own).chain(of_secret).collect()
}

/// The domain of a cluster: a name without a dot is one below the domain of the provider.
fn full_domain(request: &InstallRequest<'_>) -> String {
    let pointer = "/openShiftCluster/properties/clusterProfile/domain";
    let domain = text(request.document, pointer);
    if domain.contains('.') {
        domain.to_owned()
    } else {
        format!("{domain}.{}", request.domain)
    }
}

/// The Secrets of an installation, by name.
pub(super) fn secrets(request: &InstallRequest<'_>) -> Vec<(&'static str, Value)> {
    let document = request.document;
    let cluster = &document["openShiftCluster"];
    let of = |pointer: &str| text(cluster, pointer);
    let encoded = |value: &str| Value::from(STANDARD.encode(value));
    let subscription = text(document, "/partitionKey");
    let tenant = text(request.subscription, "/subscription/properties/tenantId");
    let principal = json!({
        "clientId": of("/properties/servicePrincipalProfile/clientId"),
        "clientSecret": of("/properties/servicePrincipalProfile/clientSecret"),
        "tenantId": tenant,
        "subscriptionId": subscription,
    });
    let pull_secret = match of("/properties/clusterProfile/pullSecret") {
        "" => r#"{"auths":{}}"#,
        text => text,
    };
    vec![
        (
            "cluster-service-principal-secret",
            json!({
                "osServicePrincipal.json": encoded(&principal.to_string()),
                // The cluster with its secrets, as the installer reads it.
                "99_aro.json": encoded(&cluster.to_string()),
                "99_sub.json": encoded(&request.subscription["subscription"].to_string()),
            }),
        ),
        ("cluster-manifests-secret", json!({})),
        (
            ENVIRONMENT,
            environment(request)
                .into_iter()
                .map(|(name, value)| (name.to_owned(), encoded(&value)))
                .collect(),
        ),
        (
            "aro-pullsecret",
            json!({".dockerconfigjson": encoded(pull_secret)}),
        ),
        (
            "aro-installconfig",
            json!({"install-config.yaml": encoded(&install_config(request))}),
        ),
    ]
}

/// What Hive wants to see of the configuration. The installer makes its own of the cluster.
fn install_config(request: &InstallRequest<'_>) -> String {
    let location = request.location;
    format!("apiVersion: v1\nplatform:\n  azure:\n    region: {location:?}\n")
}

/// The ClusterDeployment of a cluster that exists: Hive installs nothing, and deletes nothing when it goes.
pub(super) fn adopted(request: &InstallRequest<'_>, namespace: &str) -> Value {
    let document = request.document;
    let infra = text(document, "/openShiftCluster/properties/infraId");
    let mut object = deployment(request, namespace);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata["labels"]["aro.openshift.io/created-by-hive"] = "false".into();
    }
    let spec = &mut object["spec"];
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("provisioning");
        spec.remove("pullSecretRef");
    }
    spec["installed"] = true.into();
    spec["clusterMetadata"] = json!({
        "clusterID": text(document, "/id"),
        "infraID": infra,
        "adminKubeconfigSecretRef": {"name": ADOPTED_KUBECONFIG},
    });
    object
}

/// The ClusterDeployment of an installation.
pub(super) fn deployment(request: &InstallRequest<'_>, namespace: &str) -> Value {
    let document = request.document;
    let cluster = &document["openShiftCluster"];
    let of = |pointer: &str| text(cluster, pointer);
    let id = ClusterId::parse(text(document, "/key"));
    let subscription = text(document, "/partitionKey");
    let correlation = &document["correlationData"];
    let domain = full_domain(request);
    let name = id.map(|id| id.name).unwrap_or_default();
    json!({
        "apiVersion": CLUSTER_DEPLOYMENT.api_version,
        "kind": CLUSTER_DEPLOYMENT.kind,
        "metadata": {
            "namespace": namespace,
            "name": NAME,
            "labels": {
                "hive.openshift.io/cluster-platform": "azure",
                "hive.openshift.io/cluster-region": request.location,
                "api.openshift.com/hosted-on-behalf-of": format!("sub_{subscription}"),
                "aro.openshift.io/created-by-hive": "true",
            },
            "annotations": {
                "hive.openshift.io/minimal-install-mode": "True",
                "hive.openshift.io/cli-domain-from-installer-image": "True",
                "hive.openshift.io/infra-disabled": "true",
                "hive.openshift.io/location": request.location,
                "hive.openshift.io/version": of("/properties/clusterProfile/version"),
                (CORRELATION[0]): text(correlation, "/correlationId"),
                (CORRELATION[1]): text(correlation, "/clientRequestId"),
                (CORRELATION[2]): text(correlation, "/requestId"),
            },
        },
        "spec": {
            "baseDomain": domain,
            "clusterName": name,
            "installed": false,
            "installAttemptsLimit": 1,
            "preserveOnDelete": true,
            "manageDNS": false,
            "controlPlaneConfig": {
                "apiServerIPOverride": of("/properties/networkProfile/privateEndpointIp"),
                "apiURLOverride": format!("api-int.{domain}:6443"),
            },
            "platform": {"azure": {
                "baseDomainResourceGroupName": of("/properties/clusterProfile/resourceGroupId"),
                "region": request.location,
                "credentialsSecretRef": {"name": "cluster-service-principal-secret"},
            }},
            "pullSecretRef": {"name": "aro-pullsecret"},
            "provisioning": {
                "installerImageOverride": text(request.version, "/installerPullspec"),
                "releaseImage": text(request.version, "/openShiftPullspec"),
                "installConfigSecretRef": {"name": "aro-installconfig"},
                "manifestsSecretRef": {"name": "cluster-manifests-secret"},
                "installerEnv": installer_env(request),
            },
        },
    })
}
