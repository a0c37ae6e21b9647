//! The ImageStream: names for images, and the history of what each name meant.
//!
//! The subset of OpenShift's `image.openshift.io/v1` that releases need. On OpenShift these types read and
//! write the real API; elsewhere the definition made from them is installed. `status.tags[].import` and
//! `status.summary` are ours: OpenShift neither writes nor reads them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::CustomResource;
use neap_kit::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// The type of the condition that an import sets on a tag.
pub const IMPORT_SUCCESS: &str = "ImportSuccess";
/// The kind of a reference to an image in a registry.
pub const DOCKER_IMAGE: &str = "DockerImage";
/// The annotation of an ImageStream that asks for imports: a JSON object from tag to the time of the request.
pub const IMPORT_REQUESTED: &str = "image.neaptide.dev/import-requested";
/// The annotation of an ImageStream that names the other namespaces whose ImageStreams may follow it, separated by
/// commas; `*` allows all.
pub const REFERENCED_BY: &str = "image.neaptide.dev/referenced-by";

/// What users want: the tags and where their images come from.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "image.openshift.io",
    version = "v1",
    kind = "ImageStream",
    plural = "imagestreams",
    shortname = "is",
    doc = "Names for images, and the history of the digests that each name stood for.",
    namespaced,
    status = "ImageStreamStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"Image Repository","type":"string","jsonPath":".status.summary.repository"}"#,
    printcolumn = r#"{"name":"Tags","type":"integer","jsonPath":".status.summary.tags"}"#,
    printcolumn = r#"{"name":"Newest","type":"string","jsonPath":".status.summary.newestTag"}"#,
    printcolumn = r#"{"name":"Updated","type":"date","jsonPath":".status.summary.lastUpdate"}"#,
    printcolumn = r#"{"name":"Failing","type":"integer","jsonPath":".status.summary.importsFailing","description":"Tags whose last import failed"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ImageStreamSpec {
    /// Whether pods may name the stream in place of an image. Kept for OpenShift; nothing here reads it.
    #[serde(default)]
    pub lookup_policy: LookupPolicy,
    /// The tags.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(schema_with = "tag_references")]
    pub tags: Vec<TagReference>,
}

/// Whether pods may name the stream in place of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LookupPolicy {
    /// For pods of the same namespace.
    #[serde(default)]
    pub local: bool,
}

/// A tag as users want it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TagReference {
    /// The name of the tag.
    pub name: String,
    /// Annotations of the tag.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub annotations: BTreeMap<String, String>,
    /// Where the image comes from; absent where images are only pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ImageSource>,
    /// Whether the tag is only a reference that is never imported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reference: bool,
    /// The generation of the stream at which the tag was set; an import is due while the newest image is older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// How the tag is imported.
    #[serde(default, deserialize_with = "null_is_default")]
    pub import_policy: ImportPolicy,
    /// How the image is named to pods. Kept for OpenShift; nothing here reads it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub reference_policy: ReferencePolicy,
}

/// The object or image that a tag follows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ImageSource {
    /// `DockerImage`, `ImageStreamTag` or `ImageStreamImage`.
    pub kind: String,
    /// The pull spec, or the name of the object.
    pub name: String,
    /// The namespace of the object; that of the stream if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl ImageSource {
    /// An image in a registry.
    pub fn image(pull_spec: impl Into<String>) -> Self {
        Self {
            kind: DOCKER_IMAGE.to_owned(),
            name: pull_spec.into(),
            namespace: None,
        }
    }
}

/// How a tag is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportPolicy {
    /// Whether the registry may be spoken to over plain HTTP, or with a certificate that is not trusted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// Whether the tag is imported again from time to time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scheduled: bool,
    /// What is recorded of a manifest list; `Legacy` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_mode: Option<ImportMode>,
}

/// What is recorded of a manifest list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ImportMode {
    /// The image of one platform.
    #[default]
    Legacy,
    /// The list itself.
    PreserveOriginal,
}

/// How the image is named to pods.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReferencePolicy {
    /// `Source`, `Local` or nothing.
    #[serde(rename = "type", default)]
    pub kind: String,
}

/// What was imported.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageStreamStatus {
    /// The repository of the stream inside the cluster, where there is such a registry.
    #[serde(default, deserialize_with = "null_is_default")]
    pub docker_image_repository: String,
    /// The repository of the stream as it is reached from outside.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub public_docker_image_repository: String,
    /// The history of each tag.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tags: Vec<NamedTagEventList>,
    /// What `kubectl get` shows; ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<StreamSummary>,
}

/// The history of a tag, newest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NamedTagEventList {
    /// The name of the tag.
    pub tag: String,
    /// The images that it stood for, newest first.
    #[serde(default, deserialize_with = "null_is_default")]
    pub items: Vec<TagEvent>,
    /// Whether the last import succeeded.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<TagEventCondition>,
    /// The last attempt to import it; ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<ImportRecord>,
}

/// An image that a tag stood for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TagEvent {
    /// When the tag began to stand for it.
    #[schemars(schema_with = "schema::time")]
    pub created: Timestamp,
    /// The pull spec, by digest where it was imported.
    pub docker_image_reference: String,
    /// The digest; empty if the image could not be read.
    #[serde(default)]
    pub image: String,
    /// The generation of the tag.
    #[serde(default)]
    pub generation: i64,
}

/// A condition of a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TagEventCondition {
    /// The type, such as [`IMPORT_SUCCESS`].
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_transition_time: Option<Timestamp>,
    /// One CamelCase word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The generation of the tag that this is about.
    #[serde(default)]
    pub generation: i64,
}

/// The last attempt to import a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportRecord {
    /// What was imported: the pull spec, and `PreserveOriginal` and `insecure` where they applied.
    pub source: String,
    /// When it was last attempted.
    #[schemars(schema_with = "schema::time")]
    pub attempted_at: Timestamp,
    /// Failures since the last success.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "schema::count")]
    pub failures: u32,
    /// It is not attempted before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub next_attempt: Option<Timestamp>,
}

/// What `kubectl get` shows of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamSummary {
    /// The repository of the stream, or the one that all tags share.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub repository: String,
    /// The number of tags.
    #[schemars(schema_with = "schema::count")]
    pub tags: u32,
    /// The tag that was updated last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub newest_tag: String,
    /// When it was updated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_update: Option<Timestamp>,
    /// Tags whose last import failed.
    #[schemars(schema_with = "schema::count")]
    pub imports_failing: u32,
}

impl ImageStreamStatus {
    /// The history of a tag.
    pub fn tag(&self, name: &str) -> Option<&NamedTagEventList> {
        self.tags.iter().find(|tag| tag.tag == name)
    }
}

impl ImageStreamSpec {
    /// A tag by its name.
    pub fn tag(&self, name: &str) -> Option<&TagReference> {
        self.tags.iter().find(|tag| tag.name == name)
    }
}

impl NamedTagEventList {
    /// The condition of the last import.
    pub fn import_condition(&self) -> Option<&TagEventCondition> {
        let mut conditions = self.conditions.iter();
        conditions.find(|condition| condition.kind == IMPORT_SUCCESS)
    }

    /// Whether the last import failed.
    pub fn import_failed(&self) -> bool {
        let condition = self.import_condition();
        condition.is_some_and(|condition| condition.status == "False")
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// OpenShift writes `null` where a list or an object is empty.
fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Tags are a map by name, so that server-side apply merges single tags.
fn tag_references(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let item = generator.subschema_for::<TagReference>();
    schemars::json_schema!({
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_openshift_writes_is_read() {
        let stream: ImageStream = serde_json::from_value(json!({
            "apiVersion": "image.openshift.io/v1",
            "kind": "ImageStream",
            "metadata": {"name": "4.99", "namespace": "ocp", "generation": 7},
            "spec": {
                "lookupPolicy": {"local": false},
                "tags": [{
                    "name": "cli",
                    "annotations": null,
                    "from": {"kind": "DockerImage", "name": "reg.example/ocp/cli:4.99"},
                    "generation": 3,
                    "importPolicy": {"scheduled": true, "importMode": "PreserveOriginal"},
                    "referencePolicy": {"type": "Source"},
                }],
            },
            "status": {
                "dockerImageRepository": "registry.svc:5000/ocp/4.99",
                "tags": [{
                    "tag": "cli",
                    "items": null,
                    "conditions": [{
                        "type": "ImportSuccess", "status": "False", "generation": 3,
                        "lastTransitionTime": "2026-01-02T03:04:05Z",
                        "reason": "NotFound", "message": "no such image",
                    }],
                }],
            },
        }))
        .unwrap();
        let tag = stream.spec.tag("cli").unwrap();
        assert!(tag.import_policy.scheduled && !tag.import_policy.insecure);
        assert_eq!(
            tag.import_policy.import_mode,
            Some(ImportMode::PreserveOriginal)
        );
        let status = stream.status.unwrap();
        assert!(status.tag("cli").unwrap().import_failed());
        assert!(status.tag("cli").unwrap().items.is_empty());
    }

    #[test]
    fn tags_of_the_definition_are_a_map_by_name() {
        let definition =
            serde_json::to_value(<ImageStream as kube::CustomResourceExt>::crd()).unwrap();
        let tags = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
            ["properties"]["tags"];
        assert_eq!(tags["x-kubernetes-list-map-keys"], json!(["name"]));
        assert_eq!(tags["items"]["required"], json!(["name"]), "{tags}");
    }
}
