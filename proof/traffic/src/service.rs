//! A Service that may sleep and its pods, in a real cluster.

use std::{fmt, net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context, Result};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{apps::v1::Deployment, core::v1::Service as KubeService},
    jiff::Timestamp,
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams, PostParams},
};
use neap_idle::api::{ElastiService, annotations::SLEEP};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{cell::Cell, pod::PORT};

pub(crate) struct Service {
    client: Client,
    cell: Cell,
    name: String,
    arguments: [String; 3],
}

impl Service {
    pub(crate) fn new(client: &Client, cell: Cell, ledger: &Path, linger: Duration) -> Self {
        Self {
            client: client.clone(),
            cell,
            name: Self::name(cell),
            arguments: [
                cell.protocol.word().to_owned(),
                ledger.to_string_lossy().into_owned(),
                linger.as_millis().to_string(),
            ],
        }
    }

    /// The name of the service of a cell.
    pub(crate) fn name(cell: Cell) -> String {
        format!("web-{}-{}", cell.rate, cell.protocol.port_name())
    }

    /// Creates all objects; returns the address of the Service.
    pub(crate) async fn create(&self) -> Result<SocketAddr> {
        let (name, labels) = (&self.name, json!({"app": self.name}));
        let port = self.cell.protocol.port_name();
        let service = json!({
            "metadata": {"name": name},
            "spec": {"selector": labels, "ports": [{"name": port, "port": PORT}]},
        });
        let service: KubeService = self.make(service).await?;
        // A machine that is short of CPU delays probes as well: a ready pod stays ready.
        let container = json!({
            "name": "pod", "image": "loss/pod", "args": self.arguments,
            "readinessProbe": {
                "tcpSocket": {"port": PORT}, "periodSeconds": 1, "timeoutSeconds": 10,
                "failureThreshold": 10,
            },
        });
        let deployment = json!({
            "metadata": {"name": name},
            "spec": {
                "replicas": 1, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"terminationGracePeriodSeconds": 60, "containers": [container]},
                },
            },
        });
        self.make::<Deployment>(deployment).await?;
        let elasti = json!({
            "metadata": {"name": name},
            "spec": {
                "service": name, "triggers": [{"type": "prometheus", "metadata": {
                    "query": "unused", "serverAddress": "http://127.0.0.1:1", "threshold": "1",
                }}],
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            },
        });
        self.make::<ElastiService>(elasti).await?;
        let address = service.spec.and_then(|spec| spec.cluster_ip);
        let address = address.context("the Service has no address")?;
        Ok(SocketAddr::new(address.parse()?, PORT))
    }

    /// Requests sleep, as a user does.
    pub(crate) async fn sleep(&self, now: Timestamp) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {SLEEP: now.to_string()}}});
        let api: Api<ElastiService> = self.api();
        let parameters = PatchParams::default();
        api.patch(&self.name, &parameters, &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Retries, because a new kind is served only a moment after its definition.
    async fn make<K>(&self, object: Value) -> Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Serialize
            + DeserializeOwned
            + Clone
            + fmt::Debug,
    {
        let object: K = serde_json::from_value(object)?;
        let mut made = self.api().create(&PostParams::default(), &object).await;
        for _ in 0..50 {
            if made.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
            made = self.api().create(&PostParams::default(), &object).await;
        }
        Ok(made?)
    }
}
