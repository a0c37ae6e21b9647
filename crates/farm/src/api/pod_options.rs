//! What users may set about the pods of every kind, beyond the fields of the original.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::schemas;

/// Settings of the pods of a component.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodOptions {
    /// Additional labels of the pods. Those of the selector cannot be changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Additional annotations of the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Additional environment variables of the main container. Each is an external variable of its Jsonnet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schemas::named")]
    pub env: Vec<Value>,
    /// Additional volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schemas::named")]
    pub volumes: Vec<Value>,
    /// Additional mounts of the main container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schemas::named")]
    pub volume_mounts: Vec<Value>,
    /// Affinity, as in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::object")]
    pub affinity: Option<Value>,
    /// How pods are spread; over nodes, as far as possible, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::objects")]
    pub topology_spread_constraints: Option<Vec<Value>>,
    /// The priority class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// The ServiceAccount; one without rights is created if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// The security context of the pods, in place of the restricted one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::object")]
    pub security_context: Option<Value>,
    /// The update strategy of the Deployment or StatefulSet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::object")]
    pub update_strategy: Option<Value>,
    /// The grace period of the pods. That of workers is never shorter than the longest action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 604_800))]
    pub termination_grace_period_seconds: Option<i64>,
    /// The addresses on which the programs listen.
    #[serde(default, skip_serializing_if = "ListenOn::is_default")]
    pub listen_on: ListenOn,
}

/// The addresses on which the programs listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ListenOn {
    /// All addresses of the pod.
    #[default]
    AllAddresses,
    /// The address of the pod only, for pods that share a network with others.
    #[serde(rename = "PodIP")]
    PodIp,
}

impl ListenOn {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde calls it with a reference"
    )]
    fn is_default(&self) -> bool {
        *self == Self::AllAddresses
    }
}

/// How a web page is reached from outside.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressOptions {
    /// Whether there is an Ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The ingress class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_name: Option<String>,
    /// The Secret with the certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_secret_name: Option<String>,
    /// Annotations for the ingress controller.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}
