//! Small images of components: for trying the tools out, and for tests.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{go_json, labels};
use crate::oci::{
    client::{Error, RegistryClient},
    digest::sha256,
    layer::{self, LayerBlob, LayerFile},
    manifest::Manifest,
    media_type::Family,
    reference::ImageRef,
};

/// When the samples were created; the same for all, so that a payload of them has the same digest everywhere.
const CREATED: i64 = 1_767_323_110;

/// An image of a component.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleImage {
    /// The name of the component.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The files of its only layer, by their names.
    pub files: BTreeMap<String, String>,
    /// The program that it runs.
    pub entrypoint: Option<String>,
}

/// An image that is ready to be pushed.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltSample {
    /// The manifest.
    pub manifest: Manifest,
    /// The configuration.
    pub config: Bytes,
    /// The layer.
    pub layer: LayerBlob,
}

impl SampleImage {
    /// An image with these labels and files.
    pub fn new(name: &str, labels: &[(&str, &str)], files: &[(&str, &str)]) -> Self {
        let owned = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|&(key, value)| (key.to_owned(), value.to_owned()));
            pairs.collect()
        };
        Self {
            name: name.to_owned(),
            labels: owned(labels),
            files: owned(files),
            entrypoint: None,
        }
    }

    /// The image.
    pub fn build(&self) -> Result<BuiltSample, super::contents::Error> {
        let mut folders: Vec<LayerFile> = Vec::new();
        let mut files = Vec::new();
        for (name, content) in &self.files {
            if let Some((folder, _)) = name.rsplit_once('/')
                && !folders.iter().any(|it| it.name == folder)
            {
                folders.push(LayerFile {
                    name: folder.to_owned(),
                    content: None,
                    mode: 0o755,
                    mtime: CREATED,
                });
            }
            files.push(LayerFile {
                name: name.clone(),
                content: Some(content.clone().into_bytes()),
                mode: 0o644,
                mtime: CREATED,
            });
        }
        folders.extend(files);
        let layer = layer::write(&folders)?;
        let created = Timestamp::from_second(CREATED).unwrap_or_default();
        let mut inner = json!({"Labels": self.labels});
        if let Some(program) = &self.entrypoint {
            inner["Entrypoint"] = json!([program]);
        }
        let config = json!({
            "architecture": "amd64", "os": "linux", "created": created, "config": inner,
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id.to_string()]},
        });
        let config = Bytes::from(go_json::to_line(&config)?);
        let manifest = document(&config, &layer);
        let bytes = Bytes::from(go_json::to_vec(&manifest)?);
        let manifest = Manifest::read(bytes, Some(Family::Oci.manifest()), None);
        let manifest = manifest.map_err(|error| layer::Error::Name(error.to_string()))?;
        Ok(BuiltSample {
            manifest,
            config,
            layer,
        })
    }
}

fn document(config: &Bytes, layer: &LayerBlob) -> Value {
    let family = Family::Oci;
    json!({
        "schemaVersion": 2,
        "mediaType": family.manifest(),
        "config": {"mediaType": family.config(), "size": config.len(), "digest": sha256(config).to_string()},
        "layers": [{"mediaType": family.layer(), "size": layer.bytes.len(), "digest": layer.digest.to_string()}],
    })
}

/// Pushes an image; its tag last.
pub async fn push(
    client: &RegistryClient,
    built: &BuiltSample,
    target: &ImageRef,
) -> Result<(), Error> {
    client
        .push_bytes(target, &built.layer.digest, &built.layer.bytes)
        .await?;
    client
        .push_bytes(target, &sha256(&built.config), &built.config)
        .await?;
    client.push_manifest(target, &built.manifest).await
}

/// The components of a small release: the operator that installs it, two with manifests, and a program.
pub fn release() -> Vec<SampleImage> {
    let source = |name: &str| format!("https://github.com/example/{name}");
    let labelled = |name: &str, commit: &str, more: &[(&str, &str)], files: &[(&str, &str)]| {
        let source = source(name);
        let mut labels = vec![
            (labels::COMMIT_ID, commit),
            (labels::COMMIT_REF, "main"),
            (labels::SOURCE_LOCATION, source.as_str()),
        ];
        labels.extend_from_slice(more);
        SampleImage::new(name, &labels, files)
    };
    let mut installer = labelled(
        "cluster-version-operator",
        "7d1c0de5",
        &[],
        &[("usr/bin/README", "The program would be here.\n")],
    );
    installer.entrypoint = Some("/usr/bin/cluster-version-operator".to_owned());
    vec![
        installer,
        labelled(
            "cli",
            "a11ce0de",
            &[(labels::VERSIONS, "kubectl=1.36.0")],
            &[("usr/bin/README", "oc would be here.\n")],
        ),
        labelled(
            "web-operator",
            "be1a77ed",
            &[
                (labels::OPERATOR, "true"),
                (labels::VERSIONS, "kubernetes=1.36.0"),
                (labels::DISPLAY_NAMES, "kubernetes=Kubernetes"),
            ],
            &[
                (
                    "manifests/0000_30_web-operator_01_namespace.yaml",
                    "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: sample-web\n",
                ),
                ("manifests/0000_30_web-operator_02_deployment.yaml", WEB),
                ("manifests/image-references", WEB_REFERENCES),
            ],
        ),
        labelled(
            "dns-operator",
            "d15c0de5",
            &[(labels::OPERATOR, "true")],
            &[(
                "manifests/01_config.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: sample-dns\n  namespace: sample-web\ndata:\n  version: 0.0.1-snapshot\n",
            )],
        ),
    ]
}

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-operator
  namespace: sample-web
spec:
  selector:
    matchLabels: {app: web-operator}
  template:
    metadata:
      labels: {app: web-operator}
    spec:
      containers:
      - name: operator
        image: quay.io/example/web-operator:latest
        env:
        - name: RELEASE_VERSION
          value: \"0.0.1-snapshot\"
        - name: KUBERNETES_VERSION
          value: \"0.0.1-snapshot-kubernetes\"
        - name: CLI_IMAGE
          value: quay.io/example/cli
";

const WEB_REFERENCES: &str = "kind: ImageStream
apiVersion: image.openshift.io/v1
spec:
  tags:
  - name: web-operator
    from: {kind: DockerImage, name: quay.io/example/web-operator:latest}
  - name: cli
    from: {kind: DockerImage, name: quay.io/example/cli}
";
