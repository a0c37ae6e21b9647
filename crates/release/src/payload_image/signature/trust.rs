//! Which keys are trusted, and where signatures are.

use std::{collections::BTreeMap, io::Read, path::Path};

use http::StatusCode;
use neap_kit::{client::Client, why};
use serde_json::Value;

use super::{keys::KeyRing, packets};
use crate::{
    oci::digest::Digest,
    payload_image::{contents::Contents, manifest_file},
};

/// The annotation of the ConfigMap.
const ANNOTATION: &str = "release.openshift.io/verification-config-map";
const KEY_PREFIX: &str = "verifier-public-key-";
const STORE_PREFIX: &str = "store-";
/// Signatures of one digest in a store.
const MAX_SIGNATURES: u32 = 9;
/// The largest signature.
const MAX_SIGNATURE: usize = 50 << 10;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is no ConfigMap with the annotation.
    #[error("there is no ConfigMap with the annotation {ANNOTATION}")]
    None,
    /// It cannot be parsed.
    #[error("the verification configuration cannot be read")]
    Unreadable(#[source] manifest_file::Error),
    /// A key ring.
    #[error("{name} is no ring of public keys that can be used")]
    Ring {
        /// The key in the ConfigMap.
        name: String,
        /// Why.
        source: packets::Error,
    },
    /// No rings or no stores.
    #[error("the verification configuration has no {0}")]
    Missing(&'static str),
    /// A store of an unknown kind.
    #[error("{name} is {address:?}; a store begins with https://, http:// or file://")]
    Store {
        /// The key in the ConfigMap.
        name: String,
        /// Its value.
        address: String,
    },
}

/// Keys and stores.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustConfig {
    /// The rings by name.
    pub rings: BTreeMap<String, KeyRing>,
    /// The addresses of stores by name.
    pub stores: BTreeMap<String, String>,
}

/// A signature that a store had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSignature {
    /// Where it was.
    pub place: String,
    /// The message.
    pub content: Vec<u8>,
}

impl TrustConfig {
    /// The configuration that a payload brings; none if it brings none.
    pub fn of_payload(contents: &Contents) -> Result<Option<Self>, Error> {
        for file in contents.manifests().values() {
            // A manifest that cannot be parsed is reported elsewhere, and no configuration.
            let documents = manifest_file::documents(&file.content).unwrap_or_default();
            if let Some(map) = documents.iter().find(|it| is_config(it)) {
                return Self::of_map(map).map(Some);
            }
        }
        Ok(None)
    }

    /// The configuration in a file: the ConfigMap.
    pub fn read(content: &[u8]) -> Result<Self, Error> {
        let documents = manifest_file::documents(content).map_err(Error::Unreadable)?;
        let map = documents.iter().find(|it| is_config(it));
        Self::of_map(map.ok_or(Error::None)?)
    }

    fn of_map(map: &Value) -> Result<Self, Error> {
        let mut config = Self::default();
        let data = map["data"].as_object().into_iter().flatten();
        for (name, value) in data {
            let text = value.as_str().unwrap_or_default();
            if name.starts_with(KEY_PREFIX) {
                let ring = KeyRing::read(text.as_bytes()).map_err(|source| Error::Ring {
                    name: name.clone(),
                    source,
                })?;
                config.rings.insert(name.clone(), ring);
            } else if name.starts_with(STORE_PREFIX) {
                let address = text.trim().trim_end_matches('/').to_owned();
                let schemes = ["https://", "http://", "file://"];
                if !schemes.iter().any(|scheme| address.starts_with(scheme)) {
                    let name = name.clone();
                    return Err(Error::Store { name, address });
                }
                config.stores.insert(name.clone(), address);
            } else {
                tracing::warn!("{name} in the verification configuration has no meaning");
            }
        }
        match (config.rings.is_empty(), config.stores.is_empty()) {
            (true, _) => Err(Error::Missing("verifier-public-key-*")),
            (_, true) => Err(Error::Missing("store-*")),
            _ => Ok(config),
        }
    }
}

fn is_config(document: &Value) -> bool {
    document["kind"] == "ConfigMap" && !document["metadata"]["annotations"][ANNOTATION].is_null()
}

/// The signatures of a digest in all stores, and what went wrong there.
pub async fn signatures(
    client: &Client,
    trust: &TrustConfig,
    digest: &Digest,
) -> (Vec<StoredSignature>, Vec<String>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for store in trust.stores.values() {
        for number in 1..=MAX_SIGNATURES {
            let name = digest.to_string().replace(':', "=");
            let place = format!("{store}/{name}/signature-{number}");
            let content = match place.strip_prefix("file://") {
                Some(path) => from_file(Path::new(path)),
                None => from_server(client, &place).await,
            };
            match content {
                Ok(Some(content)) if content.is_empty() => {}
                Ok(Some(content)) => found.push(StoredSignature { place, content }),
                Ok(None) => break,
                Err(error) => problems.push(format!("{place}: {error}")),
            }
        }
    }
    (found, problems)
}

fn from_file(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut content = Vec::new();
    let read = file
        .take(MAX_SIGNATURE as u64 + 1)
        .read_to_end(&mut content);
    let size = read.map_err(|error| error.to_string())?;
    if size > MAX_SIGNATURE {
        return Err(format!("it has more than {MAX_SIGNATURE} bytes"));
    }
    Ok(Some(content))
}

async fn from_server(client: &Client, address: &str) -> Result<Option<Vec<u8>>, String> {
    let answer = client.get(address).fetch(MAX_SIGNATURE).await;
    let answer = answer.map_err(|error| why::chain(&error))?;
    if answer.status == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    let answer = answer.success().map_err(|error| why::chain(&error))?;
    Ok(Some(answer.body.to_vec()))
}
