//! The steps that lead an installer, and what a cluster leaves in documents.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use neap_kit::operation::Progress;
use neap_store::{Commit, Precondition, Scope, Write};
use serde_json::{Value, json};

use super::{ADMIN, ClusterSteps, SERVICE, SRE, Step, StepError};
use crate::{
    cluster::states,
    documents::{BILLING, region_document, set, text},
    install::{
        InstallRequest, Installation,
        credentials::{is_renewed, kubeconfig},
        guest,
    },
    state::ProvisioningState,
};

impl ClusterSteps {
    pub(super) async fn create_namespace(&self) -> Step {
        let document = self.document().await?;
        let installer = self.installer()?;
        let namespace = installer.namespace(text(&document.body, "/id"));
        // Its name is stored before it is there: a deletion of the cluster removes it, whatever happens between.
        self.patch(|body| {
            // The deletion of the cluster has to know whether Hive made it.
            let is_created = states(body).0 == ProvisioningState::Creating;
            let profile = json!({"namespace": namespace, "createdByHive": is_created});
            set(body, "/openShiftCluster/properties/hiveProfile", profile);
        })
        .await?;
        installer.create_namespace(&namespace).await?;
        Ok(Progress::Done)
    }

    pub(super) async fn install(&self) -> Step {
        let document = self.revealed().await?;
        let known = self.known_version(&document);
        self.installer()?
            .install(self.request(&document, &known))
            .await?;
        Ok(Progress::Done)
    }

    pub(super) async fn adopt(&self) -> Step {
        let document = self.revealed().await?;
        let known = self.known_version(&document);
        self.installer()?
            .adopt(self.request(&document, &known))
            .await?;
        Ok(Progress::Done)
    }

    fn known_version(&self, document: &Value) -> Value {
        let version = text(
            document,
            "/openShiftCluster/properties/clusterProfile/version",
        );
        self.context.versions.version(version).unwrap_or_default()
    }

    fn request<'a>(&'a self, document: &'a Value, version: &'a Value) -> InstallRequest<'a> {
        InstallRequest {
            document,
            subscription: &self.subscription,
            version,
            location: &self.context.location,
            domain: &self.context.domain,
        }
    }

    pub(super) async fn installation(&self) -> Step {
        let namespace = self.namespace().await?;
        match self.installer()?.installation(&namespace).await? {
            Installation::Complete => Ok(Progress::Done),
            Installation::Running(what) => Ok(Progress::NotYet(what)),
            Installation::Failed(error) => Err(StepError::Told(error)),
        }
    }

    pub(super) async fn generate_kubeconfigs(&self) -> Step {
        let graph = self.installer()?.graph(&self.namespace().await?).await?;
        let now = self.context.clock.now();
        let made = [
            ("adminKubeconfig", kubeconfig(&graph, &ADMIN, now)?),
            ("aroServiceKubeconfig", kubeconfig(&graph, &SERVICE, now)?),
            ("aroSREKubeconfig", kubeconfig(&graph, &SRE, now)?),
            ("userAdminKubeconfig", kubeconfig(&graph, &ADMIN, now)?),
            ("kubeadminPassword", graph.kubeadmin_password.clone()),
        ];
        self.patch(|body| {
            let properties = &mut body["openShiftCluster"]["properties"];
            for (name, value) in &made {
                properties[*name] = value.clone().into();
            }
        })
        .await?;
        Ok(Progress::Done)
    }

    pub(super) async fn fix_kubeconfig(&self) -> Step {
        let document = self.revealed().await?;
        let current = text(
            &document,
            "/openShiftCluster/properties/userAdminKubeconfig",
        );
        let now = self.context.clock.now();
        if !is_renewed(current, now) {
            return Ok(Progress::Done);
        }
        let graph = self.installer()?.graph(&self.namespace().await?).await?;
        let made = kubeconfig(&graph, &ADMIN, now)?;
        self.patch(|body| {
            let pointer = "/openShiftCluster/properties/userAdminKubeconfig";
            set(body, pointer, made.clone().into());
        })
        .await?;
        Ok(Progress::Done)
    }

    pub(super) async fn initialize_clients(&self) -> Step {
        let document = self.revealed().await?;
        let kubeconfig = text(
            &document,
            "/openShiftCluster/properties/aroServiceKubeconfig",
        );
        let connector = &self.context.connector;
        let guest = connector.connect(kubeconfig, self.context.clock).await?;
        *self.guest.lock() = Some(guest);
        Ok(Progress::Done)
    }

    pub(super) async fn update_cluster_data(&self) -> Step {
        let graph = self.installer()?.graph(&self.namespace().await?).await?;
        let domain = guest::ingress_domain(&self.guest()?).await?;
        let console = if graph.console_url.is_empty() && !domain.is_empty() {
            format!("https://console-openshift-console.{domain}/")
        } else {
            graph.console_url.clone()
        };
        self.patch(|body| {
            let properties = &mut body["openShiftCluster"]["properties"];
            set(
                properties,
                "/apiserverProfile/url",
                graph.api_url.clone().into(),
            );
            if !console.is_empty() {
                set(properties, "/consoleProfile/url", console.clone().into());
            }
            set(
                properties,
                "/networkProfile/softwareDefinedNetwork",
                "OVNKubernetes".into(),
            );
        })
        .await?;
        Ok(Progress::Done)
    }

    pub(super) async fn update_secret(&self) -> Step {
        let document = self.revealed().await?;
        let of = |pointer: &str| {
            let pointer = format!("/openShiftCluster/properties/{pointer}");
            Value::from(STANDARD.encode(text(&document, &pointer)))
        };
        let data = json!({
            "azure_client_id": of("servicePrincipalProfile/clientId"),
            "azure_client_secret": of("servicePrincipalProfile/clientSecret"),
        });
        Ok(guest::update_credentials(&self.guest()?, data).await?)
    }

    pub(super) async fn ensure_billing(&self) -> Step {
        let document = self.document().await?.body;
        let tenant = text(&self.subscription, "/subscription/properties/tenantId");
        let id = text(&document, "/id");
        let key = region_document(BILLING, id);
        let created_at = self.database_second().await?;
        let record = json!({
            "id": id,
            "key": document["key"],
            "clusterResourceGroupIDKey": document["clusterResourceGroupIdKey"],
            "infraId": document["openShiftCluster"]["properties"]["infraId"],
            "billing": {
                "creationTime": created_at,
                "location": self.context.location,
                "tenantID": tenant,
            },
        });
        let commit = Commit::default().with(self.fence()).create(key, record);
        match self.context.store.commit(commit).await {
            Ok(_) | Err(neap_store::Error::Exists(_)) => Ok(Progress::Done),
            Err(error) => Err(error.into()),
        }
    }

    /// The time of the database in seconds since 1970: the clocks of backends may differ, and bills must not.
    async fn database_second(&self) -> Result<i64, StepError> {
        Ok(self.context.store.now().await? / 1000)
    }

    /// Lets no worker write a bill whose lease another one has.
    fn fence(&self) -> Write {
        Write::Fence {
            lease: self.lease.clone(),
            progress: false,
        }
    }

    pub(super) async fn delete_billing(&self) -> Step {
        let document = self.document().await?.body;
        let key = region_document(BILLING, text(&document, "/id"));
        let store = &self.context.store;
        let Some(record) = store.get(Scope::Everywhere, &key).await? else {
            return Ok(Progress::Done);
        };
        let mut body = record.body;
        if body["billing"]["deletionTime"].is_null() {
            body["billing"]["deletionTime"] = self.database_second().await?.into();
            let commit = Commit::default().with(self.fence());
            let commit = commit.put(key, Precondition::Etag(record.etag), body);
            store.commit(commit).await?;
        }
        Ok(Progress::Done)
    }

    /// Removes what Hive installed. True once it is gone.
    pub(super) async fn delete_namespace(&self) -> Result<bool, StepError> {
        let namespace = self.namespace().await?;
        if namespace.is_empty() {
            // The creation never came so far.
            return Ok(true);
        }
        Ok(self.installer()?.delete(&namespace).await?)
    }
}
