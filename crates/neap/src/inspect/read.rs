//! Reads untyped objects from the server, in pages.

use kube::Client;
pub(crate) use neap_kit::area::ResourceType;
use serde_json::Value;

/// Objects per page of a list.
const PAGE: usize = 500;

const fn kind(name: &'static str, api_version: &'static str, plural: &'static str) -> ResourceType {
    ResourceType::namespaced(name, api_version, plural)
}

const fn cluster_scoped(kind: ResourceType) -> ResourceType {
    ResourceType {
        namespaced: false,
        ..kind
    }
}

pub(crate) const POD: ResourceType = kind("Pod", "v1", "pods");
pub(crate) const SERVICE: ResourceType = kind("Service", "v1", "services");
pub(crate) const EVENT: ResourceType = kind("Event", "v1", "events");
pub(crate) const CLAIM: ResourceType =
    kind("PersistentVolumeClaim", "v1", "persistentvolumeclaims");
pub(crate) const NODE: ResourceType = cluster_scoped(kind("Node", "v1", "nodes"));
pub(crate) const DEPLOYMENT: ResourceType = kind("Deployment", "apps/v1", "deployments");
pub(crate) const REPLICA_SET: ResourceType = kind("ReplicaSet", "apps/v1", "replicasets");
pub(crate) const STATEFUL_SET: ResourceType = kind("StatefulSet", "apps/v1", "statefulsets");
pub(crate) const DAEMON_SET: ResourceType = kind("DaemonSet", "apps/v1", "daemonsets");
pub(crate) const JOB: ResourceType = kind("Job", "batch/v1", "jobs");
pub(crate) const SLICE: ResourceType =
    kind("EndpointSlice", "discovery.k8s.io/v1", "endpointslices");
pub(crate) const CLASS: ResourceType =
    cluster_scoped(kind("StorageClass", "storage.k8s.io/v1", "storageclasses"));
pub(crate) const OPERATION: ResourceType = kind("Operation", "neaptide.dev/v1alpha1", "operations");

/// The path of a collection.
pub(crate) fn path(api_version: &str, namespace: Option<&str>, plural: &str) -> String {
    let root = if api_version.contains('/') {
        "apis"
    } else {
        "api"
    };
    match namespace {
        Some(namespace) => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
        None => format!("/{root}/{api_version}/{plural}"),
    }
}

/// Gets the object at `path`.
pub(crate) async fn get(client: &Client, path: &str) -> Result<Value, kube::Error> {
    let request = http::Request::get(path).body(Vec::new());
    client
        .request(request.map_err(kube::Error::HttpError)?)
        .await
}

/// Gets the object at `path`; `None` if the server responds with 404.
pub(crate) async fn find(client: &Client, path: &str) -> Result<Option<Value>, kube::Error> {
    match get(client, path).await {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Lists the objects of a kind in one namespace or in all, each with its kind. The list is empty if the
/// server does not have the kind.
pub(crate) async fn list(
    client: &Client,
    kind: ResourceType,
    namespace: Option<&str>,
    fields: Option<&str>,
) -> Result<Vec<Value>, kube::Error> {
    let found = list_served(client, kind, namespace, fields).await?;
    Ok(found.unwrap_or_default())
}

/// Lists the objects of a kind as [`list`] does; `None` if the server does not have the kind.
pub(crate) async fn list_served(
    client: &Client,
    kind: ResourceType,
    namespace: Option<&str>,
    fields: Option<&str>,
) -> Result<Option<Vec<Value>>, kube::Error> {
    let path = path(
        kind.api_version,
        namespace.filter(|_| kind.namespaced),
        kind.plural,
    );
    let fields = fields.map_or(String::new(), |fields| format!("&fieldSelector={fields}"));
    let (mut all, mut next) = (Vec::new(), String::new());
    loop {
        let page = format!("{path}?limit={PAGE}{fields}{next}");
        let Some(mut page) = find(client, &page).await? else {
            return Ok(None);
        };
        if let Value::Array(items) = page["items"].take() {
            all.extend(items.into_iter().map(|item| with_kind(kind, item)));
        }
        match page["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => next = format!("&continue={}", escaped(token)),
            _ => return Ok(Some(all)),
        }
    }
}

/// Turns a 403 into an empty list; the flag is whether the user may read the objects.
pub(crate) fn visible(
    found: Result<Vec<Value>, kube::Error>,
) -> Result<(Vec<Value>, bool), kube::Error> {
    match found {
        Ok(found) => Ok((found, true)),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok((Vec::new(), false)),
        Err(error) => Err(error),
    }
}

/// Adds kind and API version, which the items of a list do not have.
fn with_kind(kind: ResourceType, mut item: Value) -> Value {
    item["kind"] = kind.name.into();
    item["apiVersion"] = kind.api_version.into();
    item
}

/// Escapes a continue token. Tokens are base64 or letters, so few of their characters need it.
fn escaped(token: &str) -> String {
    token
        .replace('%', "%25")
        .replace('+', "%2B")
        .replace('=', "%3D")
        .replace('&', "%26")
}
