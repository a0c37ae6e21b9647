//! The BuildbarnWorker: a pool of workers.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ComponentStatus, PodOptions, schemas};

/// A pool of equal workers, each with a runner.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "buildbarn.io",
    version = "v1alpha1",
    kind = "BuildbarnWorker",
    plural = "buildbarnworkers",
    doc = "A pool of workers of a Buildbarn farm.",
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
pub struct BuildbarnWorkerSpec {
    /// The image of the worker; a tested version of bb-worker if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The image in which actions run; Ubuntu 22.04 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_image: Option<String>,
    /// The image that installs the runner; a tested version of bb-runner-installer if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_installer_image: Option<String>,
    /// The number of pods; 8 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::replicas")]
    pub replicas: Option<i32>,
    /// The name of the pool's kind of worker, in labels and file names; `ubuntu22-04` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// A ConfigMap with the user's own configuration; rendered from this spec if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_name: Option<String>,
    /// Secrets for pulling the images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schemas::references")]
    pub image_pull_secrets: Vec<Value>,
    /// Requests and limits of the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::resources")]
    pub resources: Option<Value>,
    /// Requests and limits of the runner, and so of the actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::resources")]
    pub runner_resources: Option<Value>,
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
    /// The instance names that it serves begin with this; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_name_prefix: Option<String>,
    /// The platform properties: an action runs here if its own are the same set. `OSFamily=linux` and the
    /// `container-image` of the runner if absent; an empty list serves actions without properties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Vec<PlatformProperty>>,
    /// The number of actions that a pod runs at a time; 8 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub concurrency: Option<i32>,
    /// The size class; 0 if there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_class: Option<u32>,
    /// The number of inputs that are downloaded at a time; 10 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub input_download_concurrency: Option<i32>,
    /// The number of outputs that are uploaded at a time; 11 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub output_upload_concurrency: Option<i32>,
    /// The size of the cache of inputs on each pod; 1Gi if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::quantity")]
    pub cache_size: Option<String>,
    /// The number of files in that cache; 10000 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub cache_file_count: Option<i32>,
    /// Environment variables of all actions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment_variables: BTreeMap<String, String>,
    /// Clients of REv2.0 name outputs in the older way. Only images from before 2026-03-26 support it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub legacy_outputs: bool,
    /// Actions may connect to everything that the cluster reaches; only to the farm if absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_egress: bool,
    /// How workers are drained before they are stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainOptions>,
    /// The pool takes no new actions; those that run continue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cordoned: bool,
}

impl BuildbarnWorkerSpec {
    /// The name of the pool's kind of worker.
    pub fn instance_name(&self) -> &str {
        self.instance.as_deref().unwrap_or("ubuntu22-04")
    }

    /// How long a drain waits for running actions, in seconds.
    pub fn drain_timeout_seconds(&self, longest_action: i64) -> i64 {
        let set = self.drain.as_ref().and_then(|it| it.timeout_seconds);
        set.unwrap_or(longest_action)
    }
}

/// How workers are drained.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainOptions {
    /// How long to wait for running actions; the longest time that an action may take if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 604_800))]
    pub timeout_seconds: Option<i64>,
}

/// A platform property. An action and a worker match if their sets of properties are equal.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct PlatformProperty {
    /// The name, such as `OSFamily`.
    pub name: String,
    /// The value, such as `linux`.
    #[serde(default)]
    pub value: String,
}

impl PlatformProperty {
    /// A property.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }
}
