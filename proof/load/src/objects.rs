//! The objects of the load, and their paths.

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Connection};

/// The namespace of all load.
pub const NAMESPACE: &str = "load";

/// A resource that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    ConfigMaps,
    /// Defined by [`definition`].
    Widgets,
}

pub const RESOURCES: [Resource; 2] = [Resource::ConfigMaps, Resource::Widgets];

impl Resource {
    /// The path of the collection.
    pub fn collection(self) -> String {
        match self {
            Self::ConfigMaps => format!("/api/v1/namespaces/{NAMESPACE}/configmaps"),
            Self::Widgets => {
                format!("/apis/load.neaptide.dev/v1/namespaces/{NAMESPACE}/widgets")
            }
        }
    }

    /// The path of an object.
    pub fn path(self, name: &str) -> String {
        format!("{}/{name}", self.collection())
    }

    /// An object that holds a number and some padding.
    pub fn object(self, name: &str, number: u64, padding: usize) -> Value {
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        let padding = "x".repeat(padding);
        match self {
            Self::ConfigMaps => json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                "data": {"number": number.to_string(), "padding": padding},
            }),
            Self::Widgets => json!({
                "apiVersion": "load.neaptide.dev/v1", "kind": "Widget", "metadata": metadata,
                "spec": {"number": number, "padding": padding},
            }),
        }
    }

    /// A merge patch that changes the number alone.
    pub fn patch(self, number: u64) -> Value {
        match self {
            Self::ConfigMaps => json!({"data": {"number": number.to_string()}}),
            Self::Widgets => json!({"spec": {"number": number}}),
        }
    }

    /// The number that an object holds.
    pub fn number(self, object: &Value) -> Option<u64> {
        match self {
            Self::ConfigMaps => object["data"]["number"].as_str()?.parse().ok(),
            Self::Widgets => object["spec"]["number"].as_u64(),
        }
    }
}

/// The revision of an object or a list.
pub fn revision(object: &Value) -> Result<u64> {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok())
        .with_context(|| format!("no revision in {object}"))
}

pub fn name(object: &Value) -> Result<&str> {
    object["metadata"]["name"].as_str().context("no name")
}

/// Whether an object is part of the load: the server creates a ConfigMap with its certificate
/// authority in every namespace.
pub fn is_load(name: &str) -> bool {
    name != "kube-root-ca.crt"
}

/// The definition of a custom resource named `plural`, in the group of all load.
pub fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.load.neaptide.dev")},
        "spec": {
            "group": "load.neaptide.dev", "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "number": {"type": "integer", "minimum": 0},
                        "padding": {"type": "string"},
                    }},
                }}},
            }],
        },
    })
}

/// Creates an object, and returns the response, whatever it is.
pub async fn create(
    connection: &mut Connection,
    resource: Resource,
    object: &Value,
) -> Result<Answer> {
    let path = resource.collection();
    connection
        .send(Method::POST, &path, object.to_string())
        .await
}

/// Creates the namespace and the custom resource.
pub async fn prepare(connection: &mut Connection) -> Result<()> {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (path, object) in [
        ("/api/v1/namespaces", namespace),
        (definitions, definition("widgets", "Widget")),
    ] {
        let body = object.to_string();
        connection.send(Method::POST, path, body).await?.success()?;
    }
    served(connection, &Resource::Widgets.collection()).await
}

/// Waits until a collection is served, which takes a moment after its definition.
pub async fn served(connection: &mut Connection, collection: &str) -> Result<()> {
    let watch = crate::stopwatch::Stopwatch::start();
    loop {
        let answer = connection.send(Method::GET, collection, "").await?;
        match answer.status {
            200 => return Ok(()),
            404 if watch.elapsed().as_secs() < 10 => tokio::task::yield_now().await,
            _ => answer.success().map(drop)?,
        }
    }
}
