//! The kinds of Hive, as far as a client of it sees them.

use std::collections::BTreeMap;

use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{CustomResource, CustomResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A cluster that Hive installs. What this emulator does not use is kept as it is.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[kube(
    group = "hive.openshift.io",
    version = "v1",
    kind = "ClusterDeployment",
    plural = "clusterdeployments",
    shortname = "cd",
    namespaced,
    status = "ClusterDeploymentStatus",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDeploymentSpec {
    /// The name of the cluster.
    #[serde(default)]
    pub cluster_name: String,
    /// Its domain.
    #[serde(default)]
    pub base_domain: String,
    /// Whether it is installed.
    #[serde(default)]
    pub installed: bool,
    /// What an installation leaves behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_metadata: Option<Value>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// What Hive says about a cluster.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDeploymentStatus {
    /// Conditions in the form of Hive.
    #[serde(default)]
    pub conditions: Vec<Value>,
    /// The URL of the API.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_url: String,
    /// The URL of the console.
    #[serde(
        default,
        rename = "webConsoleURL",
        skip_serializing_if = "String::is_empty"
    )]
    pub web_console_url: String,
    /// When it was installed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installed_timestamp: String,
    /// Everything else.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// What a set applies to clusters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SyncSetContent {
    /// `Upsert`, or `Sync`: what is no longer in the set is deleted.
    pub(super) resource_apply_mode: String,
    /// Objects that are applied.
    pub(super) resources: Vec<Value>,
    /// Changes of objects that exist.
    pub(super) patches: Vec<Value>,
    /// Secrets that are copied from the cluster of Hive.
    pub(super) secret_mappings: Vec<SecretMapping>,
}

/// A Secret that is copied.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SecretMapping {
    /// In the cluster of Hive.
    pub(super) source_ref: SecretReference,
    /// In the cluster that gets it.
    pub(super) target_ref: SecretReference,
}

/// Where a Secret is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SecretReference {
    /// Its name.
    pub(super) name: String,
    /// Its namespace; of a source, that of the SyncSet if it says none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
}

/// What clusters of its namespace are to have.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[kube(
    group = "hive.openshift.io",
    version = "v1",
    kind = "SyncSet",
    plural = "syncsets",
    namespaced,
    schema = "disabled"
)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SyncSetSpec {
    /// The names of the ClusterDeployments.
    pub(super) cluster_deployment_refs: Vec<Value>,
    /// What is applied.
    #[serde(flatten)]
    pub(super) content: SyncSetContent,
}

/// What clusters with these labels are to have.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[kube(
    group = "hive.openshift.io",
    version = "v1",
    kind = "SelectorSyncSet",
    plural = "selectorsyncsets",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SelectorSyncSetSpec {
    /// Selects ClusterDeployments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster_deployment_selector: Option<LabelSelector>,
    /// What is applied.
    #[serde(flatten)]
    pub(super) content: SyncSetContent,
}

/// What came of the sets of a cluster: its spec says nothing.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[kube(
    group = "hiveinternal.openshift.io",
    version = "v1alpha1",
    kind = "ClusterSync",
    plural = "clustersyncs",
    namespaced,
    status = "ClusterSyncStatus",
    schema = "disabled"
)]
pub(super) struct ClusterSyncSpec {}

/// Results in the form of Hive.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct ClusterSyncStatus(pub(super) BTreeMap<String, Value>);

/// The definitions, which keep every field.
pub(super) fn definitions() -> Vec<CustomResourceDefinition> {
    let mut definition = ClusterDeployment::crd();
    for version in &mut definition.spec.versions {
        let schema = json!({"openAPIV3Schema": anything()});
        version.schema = serde_json::from_value(schema).ok();
        version.additional_printer_columns =
            serde_json::from_value(columns("ClusterDeployment")).ok();
    }
    let mut definitions = vec![definition];
    definitions.extend(
        [
            ("hive.openshift.io", "v1", "SyncSet", "syncsets", true),
            (
                "hive.openshift.io",
                "v1",
                "SelectorSyncSet",
                "selectorsyncsets",
                false,
            ),
            (
                "hiveinternal.openshift.io",
                "v1alpha1",
                "ClusterSync",
                "clustersyncs",
                true,
            ),
        ]
        .into_iter()
        .filter_map(|(group, version, kind, plural, namespaced)| {
            let mut definition = definition_of(group, version, kind, plural, namespaced);
            definition["spec"]["versions"][0]["additionalPrinterColumns"] = columns(kind);
            serde_json::from_value(definition).ok()
        }),
    );
    definitions
}

/// What `kubectl get` prints of a kind.
fn columns(kind: &str) -> Value {
    let column =
        |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
    let text = |name: &str, path: &str| column(name, "string", path);
    let mut columns = match kind {
        "ClusterDeployment" => vec![
            text("ClusterName", ".spec.clusterName"),
            column("Installed", "boolean", ".spec.installed"),
            text(
                "Platform",
                r".metadata.labels.hive\.openshift\.io/cluster-platform",
            ),
            text(
                "Version",
                r".metadata.annotations.hive\.openshift\.io/version",
            ),
        ],
        "ClusterSync" => vec![text(
            "Failed",
            ".status.conditions[?(@.type==\"Failed\")].status",
        )],
        _ => Vec::new(),
    };
    columns.push(column("Age", "date", ".metadata.creationTimestamp"));
    columns.into()
}

fn anything() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A definition of a kind with any fields.
pub(super) fn definition_of(
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
    namespaced: bool,
) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {
                "kind": kind,
                "plural": plural,
                "singular": kind.to_lowercase(),
                "listKind": format!("{kind}List"),
            },
            "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": anything()},
            }],
        },
    })
}
