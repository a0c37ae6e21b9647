//! The registry as its clients see it, without a socket.

mod access;
mod faults;
mod keeping;
mod protocol;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use neap_kit::{
    client::{Body, Client, Fetched, RequestBuilder, Transport},
    clock::Clock,
};
use serde_json::{Value, json};

use super::{Digest, Registry, Settings};
use crate::system::Emulator;

const HOST: &str = "http://registry.example.com";
const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MAX: usize = 16 << 20;

fn clock() -> Clock {
    Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap())
}

/// A registry and a client of it.
struct Stage {
    registry: Emulator<Registry>,
    client: Client,
    clock: Clock,
}

impl Stage {
    fn open() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let clock = clock();
        Self::of(Registry::in_memory(settings, clock), clock)
    }

    fn of(registry: Registry, clock: Clock) -> Self {
        let registry = Emulator::new(registry, clock);
        Self {
            client: client(registry.transport(), clock),
            registry,
            clock,
        }
    }

    fn system(&self) -> &Arc<Registry> {
        self.registry.system()
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{HOST}{path}"))
    }

    async fn get(&self, path: &str) -> Fetched {
        self.request(Method::GET, path).fetch(MAX).await.unwrap()
    }

    async fn head(&self, path: &str) -> Fetched {
        self.request(Method::HEAD, path).fetch(MAX).await.unwrap()
    }

    async fn delete(&self, path: &str) -> StatusCode {
        self.request(Method::DELETE, path)
            .fetch(MAX)
            .await
            .unwrap()
            .status
    }

    async fn post(&self, path: &str) -> Fetched {
        self.request(Method::POST, path).fetch(MAX).await.unwrap()
    }

    async fn put(&self, path: &str, body: impl Into<Bytes>) -> Fetched {
        let request = self.request(Method::PUT, path).body(body);
        request.fetch(MAX).await.unwrap()
    }

    /// Pushes a blob in one request after the one that begins the upload.
    async fn push_blob(&self, repository: &str, content: &'static [u8]) -> Digest {
        let digest = Digest::of(content);
        let begun = self.post(&format!("/v2/{repository}/blobs/uploads/")).await;
        assert_eq!(begun.status, 202, "{begun:?}");
        let place = begun.header("location").unwrap();
        let pushed = self.put(&format!("{place}?digest={digest}"), content).await;
        assert_eq!(pushed.status, 201, "{pushed:?}");
        digest
    }

    async fn put_manifest(&self, repository: &str, reference: &str, manifest: &Value) -> Fetched {
        let path = format!("/v2/{repository}/manifests/{reference}");
        let kind = manifest["mediaType"].as_str().unwrap();
        let request = self.request(Method::PUT, &path);
        let request = request.header("content-type", kind);
        let request = request.body(manifest.to_string());
        request.fetch(MAX).await.unwrap()
    }

    /// Pushes an image with a config and a layer.
    async fn push_image(&self, repository: &str, tag: &str) -> Digest {
        let config = self.push_blob(repository, b"{}").await;
        let layer = self.push_blob(repository, b"layer").await;
        let manifest = image(&config, &layer);
        let pushed = self.put_manifest(repository, tag, &manifest).await;
        assert_eq!(pushed.status, 201, "{pushed:?}");
        digest_of(&manifest)
    }

    async fn tags(&self, repository: &str) -> Vec<String> {
        let list = self.get(&format!("/v2/{repository}/tags/list")).await;
        let list: Value = list.success().unwrap().json().unwrap();
        let tags = list["tags"].as_array().unwrap().iter();
        tags.map(|tag| tag.as_str().unwrap().to_owned()).collect()
    }
}

fn client(transport: Transport, clock: Clock) -> Client {
    Client::builder("test", clock)
        .transport(transport)
        .build()
        .unwrap()
}

fn image(config: &Digest, layer: &Digest) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": descriptor("application/vnd.oci.image.config.v1+json", config, 2),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", layer, 5)],
    })
}

fn descriptor(kind: &str, digest: &Digest, size: u64) -> Value {
    json!({"mediaType": kind, "digest": digest.to_string(), "size": size})
}

fn digest_of(manifest: &Value) -> Digest {
    Digest::of(manifest.to_string().as_bytes())
}

/// The code of the first error in the body.
fn code(answer: &Fetched) -> String {
    let body: Value = answer.json().unwrap();
    let error = &body["errors"][0];
    assert!(error["message"].is_string(), "{body}");
    error["code"].as_str().unwrap().to_owned()
}

fn body_of(stream: &'static str) -> Body {
    Body::from(stream)
}
