//! The image of a payload: the manifest and configuration of its base, with one layer more.

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{go_json, image_references::truncated};
use crate::oci::{
    digest::{Digest, sha256},
    layer::LayerBlob,
    manifest::{Content, Descriptor, Manifest},
    media_type::{self, Family},
};

/// The label with the name of the release.
pub const RELEASE: &str = "io.openshift.release";
/// The label with the digest of the base.
pub const BASE_DIGEST: &str = "io.openshift.release.base-image-digest";
/// What the history says about the layer.
const COMMENT: &str = "Release image for OpenShift";

/// Why no image can be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is not JSON of the expected form.
    #[error("the configuration of the base image cannot be read")]
    Config(#[source] serde_json::Error),
    /// The base has layers that its configuration does not name.
    #[error("the base image has {layers} layers, and its configuration names {diff_ids}")]
    Layers {
        /// Layers of the manifest.
        layers: usize,
        /// Layers of the configuration.
        diff_ids: usize,
    },
    /// A list where an image is needed.
    #[error("the base image is a list of manifests")]
    List,
    /// The result cannot be read.
    #[error("the image that was made is not valid")]
    Manifest(#[from] crate::oci::manifest::Error),
}

/// The configuration of an image, in the order in which others write it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ImageConfig {
    /// Always empty today.
    #[serde(default)]
    pub id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    parent: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    comment: String,
    /// When it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    container: String,
    #[serde(default)]
    container_config: Map<String, Value>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    docker_version: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    author: String,
    /// How containers are started; labels are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
    /// The architecture.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub architecture: String,
    /// The size of all layers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub size: u64,
    /// The layers before compression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rootfs: Option<RootFs>,
    /// How the layers came to be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<History>,
    /// The operating system.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub os: String,
    #[serde(
        rename = "os.version",
        default,
        skip_serializing_if = "String::is_empty"
    )]
    os_version: String,
    #[serde(rename = "os.features", default, skip_serializing_if = "Vec::is_empty")]
    os_features: Vec<String>,
    /// What others may add, such as `variant`.
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// The layers before compression.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Their digests.
    #[serde(default)]
    pub diff_ids: Vec<String>,
}

/// How a layer came to be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct History {
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    author: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    created_by: String,
    /// In words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    empty_layer: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ImageConfig {
    /// Reads a configuration.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(bytes).map_err(Error::Config)
    }

    /// A label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.config.as_ref()?.get("Labels")?.get(name)?.as_str()
    }

    /// All labels.
    pub fn labels(&self) -> std::collections::BTreeMap<String, String> {
        let labels = self.config.as_ref().and_then(|config| config.get("Labels"));
        let labels = labels.and_then(Value::as_object).into_iter().flatten();
        let texts =
            labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        texts.collect()
    }
}

/// What a payload is built on: an image, or nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Base {
    /// Its manifest.
    pub manifest: Manifest,
    /// Its configuration.
    pub config: ImageConfig,
}

/// An image that is ready to be pushed.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltImage {
    /// The manifest.
    pub manifest: Manifest,
    /// The bytes of the configuration.
    pub config: Bytes,
    /// Their digest.
    pub config_digest: Digest,
    /// The layers of the base, which must exist where the image is pushed.
    pub base_layers: Vec<Descriptor>,
}

/// The image of a payload: `base` with `layer` on top.
pub fn build(
    base: Option<&Base>,
    layer: &LayerBlob,
    name: &str,
    created: Timestamp,
) -> Result<BuiltImage, Error> {
    let created = truncated(created);
    let family = base.map_or(Family::Docker, |base| base.manifest.family());
    let base_layers = match base.map(|base| &base.manifest.content) {
        Some(Content::Image(image)) => image.layers().clone(),
        Some(Content::List(_)) => return Err(Error::List),
        None => Vec::new(),
    };
    // What only the OCI has, such as layers compressed with zstd, makes the whole an OCI image.
    let foreign = base_layers
        .iter()
        .any(|it| is_oci_only(it.media_type().as_ref()));
    let family = if foreign { Family::Oci } else { family };
    let config = config(base, layer, name, created, &base_layers)?;
    let config = Bytes::from(go_json::to_line(&config).map_err(Error::Config)?);
    let config_digest = sha256(&config);
    let mut layers: Vec<Value> = base_layers
        .iter()
        .map(|it| descriptor(it, family))
        .collect();
    layers.push(json!({
        "mediaType": family.layer(),
        "size": layer.bytes.len(),
        "digest": layer.digest.to_string(),
    }));
    let manifest = Document {
        schema_version: 2,
        media_type: family.manifest(),
        config: json!({
            "mediaType": family.config(),
            "size": config.len(),
            "digest": config_digest.to_string(),
        }),
        layers,
    };
    let bytes = go_json::to_vec(&manifest).map_err(Error::Config)?;
    Ok(BuiltImage {
        manifest: Manifest::read(bytes.into(), Some(family.manifest()), None)?,
        config,
        config_digest,
        base_layers,
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: u32,
    media_type: &'static str,
    config: Value,
    layers: Vec<Value>,
}

fn config(
    base: Option<&Base>,
    layer: &LayerBlob,
    name: &str,
    created: Timestamp,
    base_layers: &[Descriptor],
) -> Result<ImageConfig, Error> {
    let mut config = base.map(|base| base.config.clone()).unwrap_or_default();
    if config.os.is_empty() {
        "linux".clone_into(&mut config.os);
    }
    if config.architecture.is_empty() {
        "amd64".clone_into(&mut config.architecture);
    }
    config.container.clear();
    config.parent.clear();
    config.container_config.clear();
    config.created = Some(created);
    let mut labels = Map::new();
    labels.insert(RELEASE.to_owned(), name.into());
    if let Some(base) = base {
        labels.insert(
            BASE_DIGEST.to_owned(),
            base.manifest.digest.to_string().into(),
        );
    }
    let inner = config.config.get_or_insert_default();
    inner.insert("Labels".to_owned(), labels.into());
    let mut diff_ids = config.rootfs.take().unwrap_or_default().diff_ids;
    if diff_ids.len() != base_layers.len() {
        return Err(Error::Layers {
            layers: base_layers.len(),
            diff_ids: diff_ids.len(),
        });
    }
    diff_ids.push(layer.diff_id.to_string());
    let entry = |comment: &str| History {
        created: Some(created),
        comment: comment.to_owned(),
        ..History::default()
    };
    config.history = vec![entry(""); diff_ids.len()];
    config.history[0] = entry(COMMENT);
    config.rootfs = Some(RootFs {
        kind: "layers".to_owned(),
        diff_ids,
    });
    let sizes = base_layers.iter().map(Descriptor::size);
    config.size = sizes.sum::<u64>() + layer.bytes.len() as u64;
    Ok(config)
}

/// A descriptor of the base. The two families name the same gzip archives differently; an image has the names
/// of one family.
fn descriptor(found: &Descriptor, family: Family) -> Value {
    let kind = found.media_type().to_string();
    let kind = match (family, kind.as_str()) {
        (Family::Docker, media_type::OCI_LAYER) | (Family::Oci, media_type::DOCKER_LAYER) => {
            family.layer().to_owned()
        }
        _ => kind,
    };
    let mut value =
        json!({"mediaType": kind, "size": found.size(), "digest": found.digest().to_string()});
    if let Some(urls) = found.urls() {
        value["urls"] = json!(urls);
    }
    value
}

fn is_oci_only(kind: &str) -> bool {
    kind.starts_with("application/vnd.oci.") && kind != media_type::OCI_LAYER
}

/// A list whose images were each given the layer of a payload. What is listed beside images, such as
/// attestations, is about the images of the base and left out.
pub fn rebuild_list(
    list: &Manifest,
    children: &[(Descriptor, BuiltImage)],
) -> Result<Manifest, Error> {
    let mut value: Value = serde_json::from_slice(&list.bytes).map_err(Error::Config)?;
    let mut family = list.family();
    if children
        .iter()
        .any(|(_, built)| built.manifest.family() == Family::Oci)
    {
        family = Family::Oci;
    }
    let kind = match family {
        Family::Oci => media_type::OCI_INDEX,
        Family::Docker => media_type::DOCKER_LIST,
    };
    let children = children.iter().map(|(child, built)| {
        json!({
            "mediaType": built.manifest.media_type,
            "size": built.manifest.bytes.len(),
            "digest": built.manifest.digest.to_string(),
            "platform": child.platform(),
        })
    });
    value["mediaType"] = kind.into();
    value["manifests"] = children.collect();
    let bytes = go_json::to_vec(&value).map_err(Error::Config)?;
    Ok(Manifest::read(bytes.into(), Some(kind), None)?)
}
