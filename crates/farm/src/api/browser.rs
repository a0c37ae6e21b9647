//! The BuildbarnBrowser: a web page for actions and their results.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ComponentStatus, IngressOptions, PodOptions, schemas};

/// The browser of a farm.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "buildbarn.io",
    version = "v1alpha1",
    kind = "BuildbarnBrowser",
    plural = "buildbarnbrowsers",
    doc = "The browser of a Buildbarn farm.",
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
pub struct BuildbarnBrowserSpec {
    /// The image; a tested version of bb-browser if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The number of pods; 3 if absent.
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
    /// The host of its Ingress; no Ingress if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_host: Option<String>,
    /// More settings of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodOptions>,
    /// More settings of its Ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<IngressOptions>,
    /// The address in links to it, such as `https://builds.example.com`; from `ingressHost` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_url: Option<String>,
}
