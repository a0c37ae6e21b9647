//! Reads objects as they are, in pages.

use kube::Client;
use serde_json::Value;

/// So many objects are asked for at once.
const PAGE: usize = 500;

/// A kind that every server has, or may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) api_version: &'static str,
    pub(crate) plural: &'static str,
    namespaced: bool,
}

const fn kind(name: &'static str, api_version: &'static str, plural: &'static str) -> Kind {
    Kind {
        name,
        api_version,
        plural,
        namespaced: true,
    }
}

const fn global(kind: Kind) -> Kind {
    Kind {
        namespaced: false,
        ..kind
    }
}

pub(crate) const POD: Kind = kind("Pod", "v1", "pods");
pub(crate) const SERVICE: Kind = kind("Service", "v1", "services");
pub(crate) const EVENT: Kind = kind("Event", "v1", "events");
pub(crate) const CLAIM: Kind = kind("PersistentVolumeClaim", "v1", "persistentvolumeclaims");
pub(crate) const NODE: Kind = global(kind("Node", "v1", "nodes"));
pub(crate) const DEPLOYMENT: Kind = kind("Deployment", "apps/v1", "deployments");
pub(crate) const REPLICA_SET: Kind = kind("ReplicaSet", "apps/v1", "replicasets");
pub(crate) const STATEFUL_SET: Kind = kind("StatefulSet", "apps/v1", "statefulsets");
pub(crate) const DAEMON_SET: Kind = kind("DaemonSet", "apps/v1", "daemonsets");
pub(crate) const JOB: Kind = kind("Job", "batch/v1", "jobs");
pub(crate) const SLICE: Kind = kind("EndpointSlice", "discovery.k8s.io/v1", "endpointslices");
pub(crate) const CLASS: Kind = global(kind("StorageClass", "storage.k8s.io/v1", "storageclasses"));
pub(crate) const ELASTI_SERVICE: Kind = kind(
    "ElastiService",
    "elasti.truefoundry.com/v1alpha1",
    "elastiservices",
);
pub(crate) const OPERATION: Kind = kind("Operation", "neaptide.dev/v1alpha1", "operations");

/// Where the objects of a kind are.
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

/// What is at `path`.
pub(crate) async fn get(client: &Client, path: &str) -> Result<Value, kube::Error> {
    let request = http::Request::get(path).body(Vec::new());
    client
        .request(request.map_err(kube::Error::HttpError)?)
        .await
}

/// The same, or nothing if nothing is there.
pub(crate) async fn find(client: &Client, path: &str) -> Result<Option<Value>, kube::Error> {
    match get(client, path).await {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// All objects of a kind, in one namespace or in all, each with its kind; none if the server does
/// not have the kind.
pub(crate) async fn list(
    client: &Client,
    kind: Kind,
    namespace: Option<&str>,
    fields: Option<&str>,
) -> Result<Vec<Value>, kube::Error> {
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
            return Ok(all);
        };
        if let Value::Array(items) = page["items"].take() {
            all.extend(items.into_iter().map(|item| named(kind, item)));
        }
        match page["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => next = format!("&continue={}", escaped(token)),
            _ => return Ok(all),
        }
    }
}

/// What was found, or nothing if whoever asks may not see it; whether it may be seen.
pub(crate) fn visible(
    found: Result<Vec<Value>, kube::Error>,
) -> Result<(Vec<Value>, bool), kube::Error> {
    match found {
        Ok(found) => Ok((found, true)),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok((Vec::new(), false)),
        Err(error) => Err(error),
    }
}

/// Lists leave out what kind their items are.
fn named(kind: Kind, mut item: Value) -> Value {
    item["kind"] = kind.name.into();
    item["apiVersion"] = kind.api_version.into();
    item
}

/// Tokens are base64 or letters: only three of their characters mean something in a query.
fn escaped(token: &str) -> String {
    token
        .replace('%', "%25")
        .replace('+', "%2B")
        .replace('=', "%3D")
        .replace('&', "%26")
}
