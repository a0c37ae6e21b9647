//! Requests by kind and name, on any server.

use std::fmt;

use anyhow::{Context, Result};
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

/// A kind, the path of its API, and its plural.
pub type Kind = (&'static str, &'static str, &'static str);

/// The kinds that controllers write.
pub const KINDS: [Kind; 14] = [
    ("Deployment", "apis/apps/v1", "deployments"),
    ("ReplicaSet", "apis/apps/v1", "replicasets"),
    ("StatefulSet", "apis/apps/v1", "statefulsets"),
    ("DaemonSet", "apis/apps/v1", "daemonsets"),
    ("ControllerRevision", "apis/apps/v1", "controllerrevisions"),
    ("Job", "apis/batch/v1", "jobs"),
    ("CronJob", "apis/batch/v1", "cronjobs"),
    ("Pod", "api/v1", "pods"),
    ("PersistentVolumeClaim", "api/v1", "persistentvolumeclaims"),
    ("Service", "api/v1", "services"),
    ("Endpoints", "api/v1", "endpoints"),
    (
        "EndpointSlice",
        "apis/discovery.k8s.io/v1",
        "endpointslices",
    ),
    (
        "PodDisruptionBudget",
        "apis/policy/v1",
        "poddisruptionbudgets",
    ),
    ("Event", "api/v1", "events"),
];

const CLUSTER: [Kind; 2] = [
    ("Namespace", "api/v1", "namespaces"),
    ("Node", "api/v1", "nodes"),
];
const ACCOUNT: Kind = ("ServiceAccount", "api/v1", "serviceaccounts");

/// A namespace of a server, or its cluster scope.
#[derive(Clone)]
pub struct Api {
    pub client: Client,
    namespace: String,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

impl Api {
    pub fn new(client: &Client, namespace: &str) -> Self {
        Self {
            client: client.clone(),
            namespace: namespace.to_owned(),
        }
    }

    fn path(&self, kind: &str) -> Result<String> {
        if let Some((_, base, plural)) = CLUSTER.iter().find(|known| known.0 == kind) {
            return Ok(format!("/{base}/{plural}"));
        }
        let mut known = KINDS.iter().chain([&ACCOUNT]);
        let (_, base, plural) = known
            .find(|known| known.0 == kind)
            .with_context(|| format!("{kind} is not known here"))?;
        Ok(format!("/{base}/namespaces/{}/{plural}", self.namespace))
    }

    async fn send(&self, method: Method, path: &str, form: &str, body: &Value) -> Result<Value> {
        let body = if body.is_null() {
            Vec::new()
        } else {
            serde_json::to_vec(body)?
        };
        let request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header("content-type", form)
            .body(body)?;
        let answer = self.client.request(request).await;
        answer.with_context(|| format!("{method} {path}"))
    }

    pub async fn create(&self, object: &Value) -> Result<Value> {
        let kind = object["kind"].as_str().context("no kind")?;
        self.send(Method::POST, &self.path(kind)?, "application/json", object)
            .await
    }

    pub async fn bind(&self, pod: &str, node: &str) -> Result<Value> {
        let path = format!("{}/{pod}/binding", self.path("Pod")?);
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        self.send(Method::POST, &path, "application/json", &binding)
            .await
    }

    pub async fn get(&self, kind: &str, name: &str) -> Result<Value> {
        let path = format!("{}/{name}", self.path(kind)?);
        self.send(Method::GET, &path, "", &Value::Null).await
    }

    pub async fn list(&self, kind: &Kind) -> Result<Vec<Value>> {
        let mut list = self
            .send(Method::GET, &self.path(kind.0)?, "", &Value::Null)
            .await?;
        let items = list["items"].as_array_mut().context("not a list")?;
        let mut items = std::mem::take(items);
        for item in &mut items {
            item["kind"] = kind.0.into();
        }
        Ok(items)
    }

    /// `what` is a name, optionally with a subresource.
    pub async fn patch(&self, kind: &str, what: &str, patch: &Value) -> Result<Value> {
        let path = format!("{}/{what}", self.path(kind)?);
        let form = "application/strategic-merge-patch+json";
        self.send(Method::PATCH, &path, form, patch).await
    }

    pub async fn delete(&self, kind: &str, name: &str, options: &Value) -> Result<Value> {
        let path = format!("{}/{name}", self.path(kind)?);
        self.send(Method::DELETE, &path, "application/json", options)
            .await
    }
}
