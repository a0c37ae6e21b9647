//! The JSON between operators and resolvers.
//!
//! The first half is KubeElasti's contract: a resolver or an operator of KubeElasti 0.1.30 may be at the
//! other end, so the names and shapes are theirs. The second half is only used among our own.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Breakdown, ElastiService, ElastiServiceSpec};

/// Path at the operator: a resolver reports that it has a request for a service.
pub const INCOMING_REQUEST: &str = "/informer/incoming-request";
/// The query with which our resolvers request a response only after the replicas are written. KubeElasti
/// has no such query: its operator responds at once, and so do we to its resolvers.
pub const AND_WAIT: &str = "wait=written";
/// Path at the operator: the services that may sleep.
pub const CRD_CACHE: &str = "/crd-cache";
/// Path at a resolver: whether it holds requests for a service.
pub const QUEUE_STATUS: &str = "/queue-status";
/// Path at a resolver: the services that it knows.
pub const CRD_CACHE_STATUS: &str = "/crd-cache-status";
/// Path at a resolver: opens connections and reports how many were accepted.
pub const PROBE: &str = "/probe";
/// Path at a resolver: which connections it accepted.
pub const TAKEN: &str = "/taken";
/// Path at a resolver: its request counts and the times of the last requests.
pub const ACTIVITY: &str = "/activity";

/// Replaces a secret.
pub const REDACTED: &str = "redacted";

/// A resolver has requests for a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncomingRequest {
    /// The number of waiting requests; the operator does not use it.
    #[serde(default)]
    pub count: i64,
    /// The public Service.
    #[serde(default)]
    pub svc: String,
    /// Its namespace.
    #[serde(default)]
    pub namespace: String,
}

/// The response to an [`IncomingRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncomingRequestReply {
    /// A text for people.
    pub message: String,
}

impl Default for IncomingRequestReply {
    fn default() -> Self {
        Self {
            message: "Request received successfully!".to_owned(),
        }
    }
}

/// The services that may sleep, by `namespace/service`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Directory {
    /// The services.
    #[serde(default)]
    pub services: BTreeMap<String, DirectoryEntry>,
}

/// One service that may sleep.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// The name of the ElastiService.
    #[serde(default)]
    pub name: String,
    /// Its spec, without secrets. Not typed: the sender may know more fields.
    #[serde(default)]
    pub spec: Value,
    /// Its status.
    #[serde(default)]
    pub status: Value,
}

impl Directory {
    /// The directory of `services`. If two name the same Service, it has the older one.
    pub fn of<'a>(services: impl IntoIterator<Item = &'a ElastiService>) -> Self {
        let mut services: Vec<_> = services.into_iter().collect();
        services.sort_by_key(|one| {
            let meta = &one.metadata;
            let made = meta.creation_timestamp.as_ref().map(|time| time.0);
            (made, meta.uid.clone())
        });
        let mut directory = Self::default();
        for service in services {
            let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
            let key = format!("{namespace}/{}", service.spec.service);
            directory
                .services
                .entry(key)
                .or_insert_with(|| DirectoryEntry::of(service));
        }
        directory
    }

    /// The same as a list, as resolvers respond with it.
    pub fn listed(&self) -> DirectoryStatus {
        let services = self.services.iter().map(|(key, entry)| ListedEntry {
            namespaced_name: key.clone(),
            entry: entry.clone(),
        });
        DirectoryStatus {
            count: self.services.len(),
            services: services.collect(),
        }
    }
}

impl DirectoryEntry {
    /// The entry of `service`, without secrets.
    pub fn of(service: &ElastiService) -> Self {
        let status = service.status.clone().unwrap_or_default();
        Self {
            name: service.metadata.name.clone().unwrap_or_default(),
            spec: redacted_spec(&service.spec),
            status: serde_json::to_value(status).unwrap_or_default(),
        }
    }
}

/// The spec without credentials for Prometheus.
pub fn redacted_spec(spec: &ElastiServiceSpec) -> Value {
    let mut spec = serde_json::to_value(spec).unwrap_or_default();
    let triggers = spec["triggers"].as_array_mut().into_iter().flatten();
    for trigger in triggers {
        hide_secrets(&mut trigger["metadata"]);
    }
    spec
}

/// Redacts credentials in the metadata of a trigger.
pub(super) fn hide_secrets(metadata: &mut Value) {
    for (name, value) in metadata.as_object_mut().into_iter().flatten() {
        // KubeElasti compares the names of these fields without regard to case.
        match name.to_ascii_lowercase().as_str() {
            "headers" => hide(value),
            "serveraddress" => hide_user(value),
            _ => {}
        }
    }
}

/// Names of headers stay, since they tell a reader which header is missing. Anything but an object is
/// replaced as a whole.
fn hide(headers: &mut Value) {
    match headers {
        Value::Object(headers) => headers
            .values_mut()
            .for_each(|value| *value = REDACTED.into()),
        Value::Null => {}
        other => *other = REDACTED.into(),
    }
}

pub(super) fn hide_user(address: &mut Value) {
    let Some(text) = address.as_str() else { return };
    let start = text.find("://").map_or(0, |at| at + 3);
    let end = text[start..]
        .find(['/', '?', '#'])
        .map_or(text.len(), |at| start + at);
    if let Some(at) = text[start..end].rfind('@') {
        let (scheme, rest) = (&text[..start], &text[start + at..]);
        *address = format!("{scheme}{REDACTED}{rest}").into();
    }
}

/// Whether a resolver holds requests for a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// 1 if it does, 0 if not.
    pub queue_status: u8,
}

/// The services that a resolver knows, ordered by name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DirectoryStatus {
    /// Their number.
    pub count: usize,
    /// The services.
    pub services: Vec<ListedEntry>,
}

/// One service in a list.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedEntry {
    /// `namespace/service`.
    pub namespaced_name: String,
    /// The service.
    #[serde(flatten)]
    pub entry: DirectoryEntry,
}

/// Requests that a resolver open connections, over which it sends no byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeRequest {
    /// The address of a Service.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// The number of connections.
    pub count: u32,
}

/// The response to a [`ProbeRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProbeReport {
    /// The source addresses of the connections that any server accepted.
    pub sources: Vec<SocketAddr>,
    /// The number of connections that no server accepted.
    pub failed: u32,
}

/// Requests which of these connections a resolver accepted itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AcceptedQuery {
    /// The source addresses of the connections.
    pub sources: Vec<SocketAddr>,
    /// Ports of the resolver whose other recent connections are reported as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// The age up to which a connection is recent, in milliseconds.
    #[serde(default)]
    pub lately: u64,
}

/// The response to [`AcceptedQuery`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AcceptedReport {
    /// The sources whose connections it accepted.
    pub taken: Vec<SocketAddr>,
    /// The sources of other recent connections to those ports: the data plane may have rewritten the
    /// source of a probe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strangers: Vec<SocketAddr>,
}

/// The requests that a resolver received, by `namespace/service`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ActivityReport {
    /// Only services for which it received a request.
    pub services: BTreeMap<String, ServiceActivity>,
}

/// The requests for one service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceActivity {
    /// The last time at which a request was in progress or bytes were carried.
    pub last: Timestamp,
    /// The number of requests that wait for a pod.
    pub held: u64,
    /// The number of requests since the resolver started.
    pub requests: u64,
    /// The last request that had to wait for a pod; of several at the same time, the one that waited
    /// longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold: Option<ColdStart>,
}

/// A request that had to wait for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColdStart {
    /// When it was served.
    pub served: Timestamp,
    /// The time that each part of its wait took.
    pub breakdown: Breakdown,
}

#[cfg(test)]
mod tests;
