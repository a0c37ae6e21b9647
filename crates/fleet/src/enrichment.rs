//! What only a cluster knows of itself, asked when a client reads it: best effort, and with a switch.

use std::{sync::Arc, time::Duration};

use neap_kit::{clock::Clock, why::chain};
use neap_store::{Document, Store};
use serde_json::{Value, json};

use crate::{
    api::ApiVersion,
    cluster_api::{ApiError, ClusterApi, ClusterConnector},
    documents::text,
    install::kinds::{CLUSTER_VERSION, MACHINE_SET, SERVICE},
    state::ProvisioningState,
};

/// The time in which the clusters of an answer are asked.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Asks clusters for what only they know.
#[derive(Debug, Clone)]
pub enum Enrichment {
    /// No cluster is asked: answers are what the documents say.
    Off,
    /// Clusters are asked with the kubeconfig in their documents.
    On(Asker),
}

/// What asks clusters. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Asker {
    /// The documents.
    pub store: Store,
    /// What leads to installed clusters.
    pub connector: Arc<dyn ClusterConnector>,
    /// The clock.
    pub clock: Clock,
}

impl Enrichment {
    /// Adds to `shown` what the cluster of `document` says.
    pub async fn enrich(&self, api: &ApiVersion, document: &Document, shown: &mut Value) {
        let Self::On(asker) = self else {
            return;
        };
        if !is_asked(&document.body) {
            return;
        }
        let asked = asker.clock.within(TIMEOUT, asker.ask(document)).await;
        match asked {
            Some(Ok(answer)) => apply(api, &answer, shown),
            Some(Err(error)) => {
                let (cluster, why) = (&document.key.id, chain(&error));
                tracing::warn!(
                    cluster,
                    why,
                    "the cluster was not asked; the answer is as stored"
                );
            }
            None => {
                let cluster = &document.key.id;
                tracing::warn!(
                    cluster,
                    "the cluster did not answer; the answer is as stored"
                );
            }
        }
    }

    /// The same for a page, all at once.
    pub async fn enrich_all(&self, api: &ApiVersion, documents: &[Document], shown: &mut [Value]) {
        let each = documents.iter().zip(shown);
        let asked = each.map(|(document, shown)| self.enrich(api, document, shown));
        futures::future::join_all(asked).await;
    }
}

/// Whether the cluster exists as far as it can be asked.
fn is_asked(document: &Value) -> bool {
    use ProvisioningState::{Creating, Deleting, Failed};
    let (state, failed) = crate::cluster::states(document);
    !matches!(
        (state, failed),
        (Creating | Deleting, _) | (Failed, Some(Creating | Deleting))
    )
}

/// What a cluster says.
#[derive(Debug, Default)]
struct Answer {
    version: String,
    workers: Vec<Value>,
    /// The address of the default ingress.
    ingress: String,
}

/// Why a cluster was not asked.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Store(#[from] neap_store::Error),
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl Asker {
    async fn ask(&self, document: &Document) -> Result<Answer, AskError> {
        let body = self.store.reveal(document)?;
        let kubeconfig = text(&body, "/openShiftCluster/properties/aroServiceKubeconfig");
        if kubeconfig.is_empty() {
            return Ok(Answer::default());
        }
        let api = self.connector.connect(kubeconfig, self.clock).await?;
        Ok(read(&api).await?)
    }
}

async fn read(api: &ClusterApi) -> Result<Answer, ApiError> {
    let version = api.get(&CLUSTER_VERSION, "", "version").await?;
    let version = version.map(|it| text(&it.data, "/status/desired/version").to_owned());
    let sets = api.list(&MACHINE_SET, "openshift-machine-api").await?;
    let workers = sets.iter().map(|set| {
        let provider = &set.data["spec"]["template"]["spec"]["providerSpec"]["value"];
        json!({
            "name": set.metadata.name,
            "vmSize": provider["vmSize"],
            "diskSizeGB": provider.pointer("/osDisk/diskSizeGB"),
            "count": set.data["spec"]["replicas"],
        })
    });
    let router = api.get(&SERVICE, "openshift-ingress", "router-default");
    let router = router.await?;
    let pointer = "/status/loadBalancer/ingress/0/ip";
    let ingress = router.map(|it| text(&it.data, pointer).to_owned());
    Ok(Answer {
        version: version.unwrap_or_default(),
        workers: workers.collect(),
        ingress: ingress.unwrap_or_default(),
    })
}

fn apply(api: &ApiVersion, answer: &Answer, shown: &mut Value) {
    let properties = &mut shown["properties"];
    if !answer.version.is_empty() {
        properties["clusterProfile"]["version"] = answer.version.clone().into();
    }
    if !answer.workers.is_empty() && api.fields.iter().any(|it| it.name == "properties") {
        properties["workerProfilesStatus"] = Value::Array(answer.workers.clone());
    }
    let ingresses = properties["ingressProfiles"].as_array_mut();
    for ingress in ingresses.into_iter().flatten() {
        if !answer.ingress.is_empty() && ingress["name"] == "default" {
            ingress["ip"] = answer.ingress.clone().into();
        }
    }
}
