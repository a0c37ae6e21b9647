//! What operators and resolvers tell each other, as JSON.
//!
//! The first half is a contract: a resolver or an operator of KubeElasti 0.1.30 may be at the other
//! end, so names and shapes are theirs. The second half is only spoken among our own.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Breakdown, ElastiService, ElastiServiceSpec};

/// Where a resolver says that somebody asks for a service.
pub const INCOMING_REQUEST: &str = "/informer/incoming-request";
/// The query by which resolvers of ours ask that the answer wait until replicas are written.
/// KubeElasti reads no query: its operator answers at once, and its resolvers are answered at once.
pub const AND_WAIT: &str = "wait=written";
/// Where an operator says which services may sleep.
pub const CRD_CACHE: &str = "/crd-cache";
/// Where a resolver says whether it holds requests for a service.
pub const QUEUE_STATUS: &str = "/queue-status";
/// Where a resolver says which services it knows of.
pub const CRD_CACHE_STATUS: &str = "/crd-cache-status";
/// Where a resolver is asked to connect somewhere.
pub const PROBE: &str = "/probe";
/// Where a resolver is asked whose connections it took.
pub const TAKEN: &str = "/taken";
/// Where a resolver says what it was asked for, and when.
pub const ACTIVITY: &str = "/activity";

/// Stands where something was that nobody else may see.
pub const REDACTED: &str = "redacted";

/// Somebody asks for a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncomingRequest {
    /// How often; nobody relies on it.
    #[serde(default)]
    pub count: i64,
    /// The public Service.
    #[serde(default)]
    pub svc: String,
    /// Its namespace.
    #[serde(default)]
    pub namespace: String,
}

/// The answer to an [`IncomingRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// For people.
    pub message: String,
}

impl Default for Received {
    fn default() -> Self {
        Self {
            message: "Request received successfully!".to_owned(),
        }
    }
}

/// The services that may sleep, by `namespace/service`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Directory {
    /// All of them.
    #[serde(default)]
    pub services: BTreeMap<String, Entry>,
}

/// One service that may sleep.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Entry {
    /// The name of the ElastiService.
    #[serde(default)]
    pub name: String,
    /// What it says, without secrets. Not a typed one: whoever sent it may know more fields.
    #[serde(default)]
    pub spec: Value,
    /// How it is doing.
    #[serde(default)]
    pub status: Value,
}

impl Directory {
    /// What may be told of `services`. If two name the same Service, the one that was there first
    /// counts.
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
                .or_insert_with(|| Entry::of(service));
        }
        directory
    }

    /// The same as a resolver lists it.
    pub fn listed(&self) -> DirectoryStatus {
        let services = self.services.iter().map(|(key, entry)| Listed {
            namespaced_name: key.clone(),
            entry: entry.clone(),
        });
        DirectoryStatus {
            count: self.services.len(),
            services: services.collect(),
        }
    }
}

impl Entry {
    /// What may be told of `service`.
    pub fn of(service: &ElastiService) -> Self {
        let status = service.status.clone().unwrap_or_default();
        Self {
            name: service.metadata.name.clone().unwrap_or_default(),
            spec: shown(&service.spec),
            status: serde_json::to_value(status).unwrap_or_default(),
        }
    }
}

/// The spec with nothing in it that lets its reader into Prometheus.
pub fn shown(spec: &ElastiServiceSpec) -> Value {
    let mut spec = serde_json::to_value(spec).unwrap_or_default();
    let triggers = spec["triggers"].as_array_mut().into_iter().flatten();
    for trigger in triggers {
        hide_secrets(&mut trigger["metadata"]);
    }
    spec
}

/// Hides in what a trigger asks whatever lets its reader into Prometheus.
pub(super) fn hide_secrets(metadata: &mut Value) {
    for (name, value) in metadata.as_object_mut().into_iter().flatten() {
        // The original read the names of these fields in any case.
        match name.to_ascii_lowercase().as_str() {
            "headers" => hide(value),
            "serveraddress" => hide_user(value),
            _ => {}
        }
    }
}

/// Names of headers stay, as they say what is missing; whatever has no names goes.
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

/// The services that a resolver knows of, in the order of their names.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DirectoryStatus {
    /// How many.
    pub count: usize,
    /// All of them.
    pub services: Vec<Listed>,
}

/// One service in a list.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// `namespace/service`.
    pub namespaced_name: String,
    /// What is known of it.
    #[serde(flatten)]
    pub entry: Entry,
}

/// Asks a resolver to open connections, and to send no byte over them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Where: the address of a Service.
    pub address: IpAddr,
    /// At which port.
    pub port: u16,
    /// How many, one after the other.
    pub count: u32,
}

/// What came of a [`Probe`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Probed {
    /// From where the connections came that were taken, by whomever.
    pub sources: Vec<SocketAddr>,
    /// How many were not taken.
    pub failed: u32,
}

/// Asks a resolver which of these connections it took itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Took {
    /// From where they came.
    pub sources: Vec<SocketAddr>,
    /// At which of its ports: whoever else came there lately is told as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// So many milliseconds ago counts as lately.
    #[serde(default)]
    pub lately: u64,
}

/// The answer to [`Took`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Taken {
    /// Those that it took.
    pub taken: Vec<SocketAddr>,
    /// Others that came to the same ports lately: their sources may have been rewritten on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strangers: Vec<SocketAddr>,
}

/// What a resolver was asked for, by `namespace/service`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Activity {
    /// Only services that it was ever asked for.
    pub services: BTreeMap<String, ServiceActivity>,
}

/// What it was asked for one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceActivity {
    /// When something was last under way: a request, or bytes of a connection.
    pub last: Timestamp,
    /// How many wait for a pod.
    pub held: u64,
    /// How many there were.
    pub requests: u64,
    /// The last that had to wait for a pod; of some at the same time, the one that waited longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold: Option<Cold>,
}

/// Somebody who had to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cold {
    /// When it was served.
    pub served: Timestamp,
    /// Where its time went.
    pub breakdown: Breakdown,
}

#[cfg(test)]
mod tests;
