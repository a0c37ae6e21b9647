//! The BuildbarnScheduler: the queue of actions.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ComponentStatus, IngressOptions, PlatformProperty, PodOptions, schemas};

/// A scheduler of a farm. There is one process: the queue is in its memory.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "buildbarn.io",
    version = "v1alpha1",
    kind = "BuildbarnScheduler",
    plural = "buildbarnschedulers",
    doc = "The scheduler of a Buildbarn farm.",
    namespaced,
    status = "ComponentStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"State","type":"string","jsonPath":".status.state"}"#,
    printcolumn = r#"{"name":"Replicas","type":"integer","jsonPath":".status.replicas"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.readyReplicas"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct BuildbarnSchedulerSpec {
    /// The image; a tested version of bb-scheduler if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The number of replicas: 1, or 0 to stop it. Two schedulers would have separate queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::replicas")]
    pub replicas: Option<i32>,
    /// A ConfigMap with the user's own configuration; rendered from this spec if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_name: Option<String>,
    /// The type of the Service; ClusterIP if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::service_type")]
    pub service_type: Option<String>,
    /// Secrets for pulling the images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schemas::references")]
    pub image_pull_secrets: Vec<Value>,
    /// Requests and limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::resources")]
    pub resources: Option<Value>,
    /// The nodes on which it may run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that it tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schemas::objects")]
    pub tolerations: Vec<Value>,
    /// More settings of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodOptions>,
    /// The Ingress of its web page. With no setting there is one, for `bb-scheduler.NAMESPACE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<IngressOptions>,
    /// The instance names that it serves begin with this; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_name_prefix: Option<String>,
    /// How long actions may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// How long actions wait for a pool whose workers are all gone; 900 seconds if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub no_workers_timeout_seconds: Option<i64>,
    /// Queues that exist before, and without, workers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predeclared_queues: Vec<PredeclaredQueue>,
}

/// How long actions may take.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// Where an action names no timeout; 1800 seconds if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub default_timeout_seconds: Option<i64>,
    /// The longest timeout that an action may name; 7200 seconds if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub maximum_timeout_seconds: Option<i64>,
}

impl Execution {
    /// The timeout where an action names none.
    pub fn default_seconds(execution: Option<&Self>) -> i64 {
        let set = execution.and_then(|it| it.default_timeout_seconds);
        set.unwrap_or(1800)
    }

    /// The longest timeout.
    pub fn maximum_seconds(execution: Option<&Self>) -> i64 {
        let set = execution.and_then(|it| it.maximum_timeout_seconds);
        set.unwrap_or(7200)
    }
}

/// A queue that exists before its workers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PredeclaredQueue {
    /// The instance names begin with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_name_prefix: Option<String>,
    /// The platform properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platform: Vec<PlatformProperty>,
    /// The size classes, in ascending order; one of size 0 if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size_classes: Vec<u32>,
}
