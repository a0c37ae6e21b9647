//! The ReleasePayload: one release, what verifies it, and the verdict.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ReleasePayloadStatus;
use crate::config::ReleaseQualifier;

/// What a release is and how it is verified. Written once; only the override changes later.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "release.openshift.io",
    version = "v1alpha1",
    kind = "ReleasePayload",
    plural = "releasepayloads",
    singular = "releasepayload",
    shortname = "rp",
    doc = "A release payload: how it is created and verified, and whether it is accepted.",
    namespaced,
    status = "ReleasePayloadStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"Stream","type":"string","jsonPath":".spec.payloadCoordinates.streamName"}"#,
    printcolumn = r#"{"name":"Created","type":"string","jsonPath":".status.conditions[?(@.type==\"PayloadCreated\")].status"}"#,
    printcolumn = r#"{"name":"Accepted","type":"string","jsonPath":".status.conditions[?(@.type==\"PayloadAccepted\")].status"}"#,
    printcolumn = r#"{"name":"Rejected","type":"string","jsonPath":".status.conditions[?(@.type==\"PayloadRejected\")].status"}"#,
    printcolumn = r#"{"name":"Override","type":"string","jsonPath":".spec.payloadOverride.override","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type==\"PayloadAccepted\")].message","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ReleasePayloadSpec {
    /// Which tag it is.
    #[serde(default)]
    pub payload_coordinates: PayloadCoordinates,
    /// The Jobs that create it, and where its ProwJobs run.
    #[serde(default)]
    pub payload_creation_config: PayloadCreationConfig,
    /// The decision of a user.
    #[serde(default)]
    pub payload_override: PayloadOverride,
    /// The jobs that verify it.
    #[serde(default)]
    pub payload_verification_config: PayloadVerificationConfig,
    /// Where it is, or will be, published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub release_coordinates: Vec<ReleaseCoordinates>,
    /// Whether its images are here or only referred to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_type: Option<PayloadType>,
}

/// Names the tag of a release.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PayloadCoordinates {
    /// The namespace of the target ImageStream and of the payload.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name of the stream in its configuration.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stream_name: String,
    /// The target ImageStream.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub imagestream_name: String,
    /// The release tag; also the name of the payload.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub imagestream_tag_name: String,
}

/// The Jobs that create and mirror the release, and the namespace of its ProwJobs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PayloadCreationConfig {
    /// The Job that creates the release image.
    #[serde(default)]
    pub release_creation_coordinates: ReleaseCreationCoordinates,
    /// Where the ProwJobs are.
    #[serde(default)]
    pub prow_coordinates: ProwCoordinates,
    /// The Job that copies the release image to the alternate repository; empty if there is none.
    #[serde(default)]
    pub release_mirror_coordinates: ReleaseMirrorCoordinates,
}

/// The creation Job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseCreationCoordinates {
    /// Its namespace.
    #[serde(default)]
    pub namespace: String,
    /// Its name.
    #[serde(default)]
    pub release_creation_job_name: String,
}

/// Where the ProwJobs are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProwCoordinates {
    /// Their namespace.
    #[serde(default)]
    pub namespace: String,
}

/// The mirror Job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseMirrorCoordinates {
    /// Its namespace.
    #[serde(default)]
    pub namespace: String,
    /// Its name.
    #[serde(default)]
    pub release_mirror_job_name: String,
}

/// The decision of a user, which stands above that of the jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PayloadOverride {
    /// `Accepted`, `Rejected`, or empty for none.
    #[serde(rename = "override", default)]
    pub decision: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What a user decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Override {
    /// The release is accepted.
    Accepted,
    /// The release is rejected.
    Rejected,
}

impl PayloadOverride {
    /// A word that is no decision.
    pub fn ignored(&self) -> Option<&str> {
        let is_ignored = !self.decision.is_empty() && self.decided().is_none();
        is_ignored.then_some(self.decision.as_str())
    }

    /// The decision. Other words than the two are no decision.
    pub fn decided(&self) -> Option<Override> {
        match self.decision.as_str() {
            "Accepted" => Some(Override::Accepted),
            "Rejected" => Some(Override::Rejected),
            _ => None,
        }
    }
}

/// The jobs that verify a release.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(oldSelf.payloadVerificationDataSource) || has(self.payloadVerificationDataSource)",
    "message": "PayloadVerificationDataSource is required once set",
}]))]
pub struct PayloadVerificationConfig {
    /// Jobs that have to pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocking_jobs: Vec<CIConfiguration>,
    /// Jobs that only inform.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub informing_jobs: Vec<CIConfiguration>,
    /// Jobs that upgrade from other releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upgrade_jobs: Vec<CIConfiguration>,
    /// Where the results of the jobs come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_verification_data_source: Option<VerificationDataSource>,
}

/// Where the results of jobs come from. The API server fills in `BuildFarmLookup`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VerificationDataSource {
    /// From ProwJobs.
    BuildFarmLookup,
    /// From the annotation of the tag, as of older releases.
    ImageStreamTagAnnotation,
}

/// One verification job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CIConfiguration {
    /// Its key in the configuration of the stream.
    #[serde(rename = "ciConfigurationName", default)]
    pub name: String,
    /// The name of its Prow periodic.
    #[serde(rename = "ciConfigurationJobName", default)]
    pub job_name: String,
    /// How often it is run again after a failure.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_retries: i32,
    /// How many runs are analysed together.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub analysis_job_count: i32,
    /// The qualifiers that it takes part in, with its own settings.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub qualifiers: std::collections::BTreeMap<String, ReleaseQualifier>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(super) fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// Where a release is published.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseCoordinates {
    /// The repository.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub repository: String,
    /// The tag.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tag: String,
    /// The digest.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
}

/// Whether the images of a release are here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PayloadType {
    /// In the registry of the stream.
    Local,
    /// In another registry; they are referred to.
    Reference,
}

/// The definition of the kind, as it is installed. Fields have the defaults and constraints of the
/// original and no others: what an object does not say is not filled in.
pub fn release_payload_definition() -> CustomResourceDefinition {
    let mut definition = serde_json::to_value(ReleasePayload::crd()).unwrap_or_default();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    without_defaults(schema, false);
    if let Some(root) = schema.as_object_mut() {
        root.remove("required");
    }
    let spec = &mut schema["properties"]["spec"]["properties"];
    spec["payloadType"]["default"] = json!("Local");
    let source =
        &mut spec["payloadVerificationConfig"]["properties"]["payloadVerificationDataSource"];
    source["default"] = json!("BuildFarmLookup");
    source["x-kubernetes-validations"] = json!([{
        "rule": "self == oldSelf",
        "message": "PayloadVerificationDataSource is immutable",
    }]);
    serde_json::from_value(definition).unwrap_or_else(|_| ReleasePayload::crd())
}

/// Removes defaults, `nullable` and, outside conditions, `required` from a schema.
fn without_defaults(schema: &mut Value, in_properties: bool) {
    match schema {
        Value::Object(fields) => {
            if !in_properties {
                fields.remove("default");
                let is_condition = fields.get("properties").is_some_and(|it| {
                    it.get("lastTransitionTime").is_some() && it.get("observedGeneration").is_some()
                });
                if !is_condition {
                    fields.remove("required");
                }
            }
            for (name, inner) in fields {
                without_defaults(inner, name == "properties" && !in_properties);
            }
        }
        Value::Array(items) => {
            for item in items {
                without_defaults(item, false);
            }
        }
        _ => {}
    }
}
