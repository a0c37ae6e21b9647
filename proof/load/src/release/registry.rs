//! Registries, and images that are pushed there.

use std::{fmt::Write as _, fs, io::Write, path::Path, process::Command, time::Duration};

use anyhow::{Context, Result};
use aws_lc_rs::digest;
use flate2::{Compression, GzBuilder};
use http::Method;
use neap_kit::{
    client::{Client, Fetched},
    clock::Clock,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::background::{BackgroundProcess, free_address};
use crate::server::Server;

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const CONFIG: &str = "application/vnd.docker.container.image.v1+json";
const LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
/// The largest answer that is read.
const MAX_ANSWER: usize = 1 << 20;

/// A registry, which ends and whose contents are deleted in the end.
pub(super) struct RegistryProcess {
    host: String,
    http: Client,
    _process: Process,
}

/// What is held while the registry runs.
#[expect(dead_code, reason = "a process ends when it is dropped")]
enum Process {
    /// That of a distribution package, with its folder.
    Packaged(BackgroundProcess, TempDir),
    /// That of a `neap up`.
    Up(Server),
}

/// A layer: its compressed bytes, and the digest of the archive.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    bytes: Vec<u8>,
    digest: String,
    diff_id: String,
}

fn sha256(bytes: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA256, bytes);
    let mut text = String::from("sha256:");
    for byte in hash.as_ref() {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl Layer {
    /// A layer with these files.
    pub(super) fn of(files: &[(String, Vec<u8>)]) -> Result<Self> {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, content) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(content.len() as u64);
            header.set_mode(0o444);
            archive.append_data(&mut header, name, content.as_slice())?;
        }
        let archive = archive.into_inner()?;
        let mut packed = GzBuilder::new()
            .mtime(0)
            .write(Vec::new(), Compression::fast());
        packed.write_all(&archive)?;
        let bytes = packed.finish()?;
        Ok(Self {
            digest: sha256(&bytes),
            diff_id: sha256(&archive),
            bytes,
        })
    }
}

impl RegistryProcess {
    /// Starts Debian's registry, and waits until it answers.
    pub(super) async fn start(program: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let address = free_address()?;
        let config = folder.path().join("config.yml");
        let data = folder.path().join("data");
        fs::write(
            &config,
            format!(
                "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\nhttp: {{addr: '{address}'}}\n\
                 storage: {{filesystem: {{rootdirectory: '{}'}}}}\n",
                data.display()
            ),
        )?;
        let mut command = Command::new(program);
        let mut process = BackgroundProcess::start(command.arg("serve").arg(&config), address)?;
        process.ready("/v2/", Duration::ZERO).await?;
        Ok(Self {
            host: address.to_string(),
            http: Client::builder("bench", Clock::system()).build()?,
            _process: Process::Packaged(process, folder),
        })
    }

    /// That of a `neap up`, which has a folder of its own.
    pub(super) fn of_neap_up(neap: &Path) -> Result<Self> {
        let server = Server::start_whole(neap, None)?;
        Ok(Self {
            host: server.registry()?.to_owned(),
            http: Client::builder("bench", Clock::system()).build()?,
            _process: Process::Up(server),
        })
    }

    /// Host and port.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    async fn send(&self, method: Method, path: &str, kind: &str, body: Vec<u8>) -> Result<()> {
        let address = format!("http://{}/v2/{path}", self.host());
        let request = self
            .http
            .request(method, &address)
            .header("content-type", kind);
        let answer = request.body(body).fetch(MAX_ANSWER).await;
        answer.and_then(Fetched::success).with_context(|| address)?;
        Ok(())
    }

    async fn blob(&self, repository: &str, digest: &str, bytes: Vec<u8>) -> Result<()> {
        let uploads = format!("http://{}/v2/{repository}/blobs/uploads/", self.host());
        let answer = self
            .http
            .post(&uploads)
            .fetch(MAX_ANSWER)
            .await?
            .success()?;
        let location = answer
            .header("location")
            .context("no location of the upload")?;
        // Registries may leave the host out.
        let location = match location.strip_prefix('/') {
            Some(path) => format!("http://{}/{path}", self.host()),
            None => location.to_owned(),
        };
        let joint = if location.contains('?') { '&' } else { '?' };
        let address = format!("{location}{joint}digest={digest}");
        let kind = "application/octet-stream";
        let request = self
            .http
            .put(&address)
            .header("content-type", kind)
            .body(bytes);
        request.fetch(MAX_ANSWER).await?.success()?;
        Ok(())
    }

    /// Pushes layers, which images may then have.
    pub(super) async fn push_layers(&self, repository: &str, layers: &[Layer]) -> Result<()> {
        for layer in layers {
            self.blob(repository, &layer.digest, layer.bytes.clone())
                .await?;
        }
        Ok(())
    }

    /// Pushes the configuration of an image; its part of a manifest.
    pub(super) async fn push_config(
        &self,
        repository: &str,
        labels: &Value,
        layers: &[Layer],
    ) -> Result<Value> {
        let diff_ids: Vec<_> = layers.iter().map(|layer| &layer.diff_id).collect();
        let config = json!({
            "architecture": "amd64", "os": "linux", "created": "2026-01-02T03:04:05Z",
            "config": {"Labels": labels, "Entrypoint": ["/usr/bin/operator"]},
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
            "history": layers.iter().map(|_| json!({"created": "2026-01-02T03:04:05Z"})).collect::<Vec<_>>(),
        });
        let config = config.to_string().into_bytes();
        let (digest, size) = (sha256(&config), config.len());
        self.blob(repository, &digest, config).await?;
        Ok(json!({"mediaType": CONFIG, "digest": digest, "size": size}))
    }

    /// Pushes a manifest of what was pushed before; its digest. The number makes it one of its own.
    pub(super) async fn push_manifest(
        &self,
        repository: &str,
        tag: &str,
        config: &Value,
        layers: &[Layer],
        number: usize,
    ) -> Result<String> {
        let layers = layers.iter().map(
            |layer| json!({"mediaType": LAYER, "digest": layer.digest, "size": layer.bytes.len()}),
        );
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config,
            "layers": layers.collect::<Vec<_>>(), "annotations": {"number": number.to_string()},
        });
        let manifest = manifest.to_string().into_bytes();
        let digest = sha256(&manifest);
        let path = format!("{repository}/manifests/{tag}");
        self.send(Method::PUT, &path, MANIFEST, manifest).await?;
        Ok(digest)
    }
}
