//! Installed clusters: API servers in memory.

use std::collections::HashMap;

use futures::{FutureExt, future::BoxFuture};
use kube::{Client, config::Kubeconfig};
use neap_emulators::hive::{ClusterFactory, ClusterSpec, StartedCluster};
use neap_kit::clock::Clock;
use neap_pocket::{Options, Pocket, environment::Environment};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use tokio::sync::Mutex;

use crate::cluster_api::{ApiError, ClusterApi, ClusterConnector};

/// The clusters of a run, by their ids.
#[derive(Default)]
pub(super) struct Clusters {
    running: Mutex<HashMap<String, (StartedCluster, Pocket)>>,
    made: parking_lot::Mutex<Vec<String>>,
}

impl std::fmt::Debug for Clusters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clusters").finish_non_exhaustive()
    }
}

fn url(id: &str) -> String {
    format!("https://{id}.example.com:6443")
}

async fn open(id: &str) -> (StartedCluster, Pocket) {
    let pocket = Pocket::open(Options::new(Environment::simulated(0)))
        .await
        .unwrap();
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let key = KeyPair::generate().unwrap();
    let authority = parameters.self_signed(&key).unwrap().pem();
    let cluster = StartedCluster {
        api_url: url(id),
        authority: authority.clone(),
        signer_certificate: authority,
        signer_key: key.serialize_pem(),
        client: Client::new(pocket.service(), "default"),
    };
    (cluster, pocket)
}

impl Clusters {
    /// What is left of clusters, and what was made more than once.
    pub(super) fn problems(&self) -> Vec<String> {
        let running = self.running.try_lock().unwrap();
        let left = running.keys().map(|id| format!("the cluster {id} is left"));
        let mut problems: Vec<_> = left.collect();
        let made = self.made.lock();
        if made.len() != 1 {
            problems.push(format!("the clusters {made:?} were made"));
        }
        problems
    }
}

impl ClusterFactory for Clusters {
    fn start<'a>(&'a self, spec: &'a ClusterSpec) -> BoxFuture<'a, Result<StartedCluster, String>> {
        async move {
            let mut running = self.running.lock().await;
            if let Some((cluster, _)) = running.get(&spec.id) {
                return Ok(cluster.clone());
            }
            let (cluster, pocket) = open(&spec.id).await;
            self.made.lock().push(spec.id.clone());
            running.insert(spec.id.clone(), (cluster.clone(), pocket));
            Ok(cluster)
        }
        .boxed()
    }

    fn running<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Option<StartedCluster>> {
        async move {
            let running = self.running.lock().await;
            running.get(id).map(|(cluster, _)| cluster.clone())
        }
        .boxed()
    }

    fn destroy<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), String>> {
        async move {
            if let Some((_, pocket)) = self.running.lock().await.remove(id) {
                pocket.close();
            }
            Ok(())
        }
        .boxed()
    }
}

impl ClusterConnector for Clusters {
    fn connect<'a>(
        &'a self,
        kubeconfig: &'a str,
        clock: Clock,
    ) -> BoxFuture<'a, Result<ClusterApi, ApiError>> {
        async move {
            let kubeconfig = Kubeconfig::from_yaml(kubeconfig);
            let kubeconfig =
                kubeconfig.map_err(|_| ApiError::Kubeconfig("it cannot be read".to_owned()))?;
            let server = kubeconfig
                .clusters
                .first()
                .and_then(|it| it.cluster.clone());
            let server = server.and_then(|it| it.server).unwrap_or_default();
            let running = self.running.lock().await;
            let found = running
                .values()
                .find(|(cluster, _)| cluster.api_url == server);
            let (cluster, _) =
                found.ok_or_else(|| ApiError::Kubeconfig(format!("{server} is gone")))?;
            Ok(ClusterApi::new(cluster.client.clone(), clock))
        }
        .boxed()
    }
}
