//! An object as it is stored: its JSON bytes, with the revision already inside.
//!
//! Gets, lists and watches copy these bytes; only writes and selectors look inside. The bytes
//! begin with `kind`, `apiVersion` and `metadata.resourceVersion` in this order, so that a list
//! can leave out the first two and a revision can be replaced without parsing.

use std::{
    fmt,
    io::Write as _,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Error, LARGEST_OBJECT};

const METADATA: &[u8] = b"\"metadata\":{\"resourceVersion\":\"";

/// One stored version of an object.
pub struct Object {
    revision: u64,
    json: Bytes,
    metadata: OnceLock<Box<Metadata>>,
    /// See [`Self::unseen`].
    unseen: AtomicU64,
}

/// An owner reference, as far as garbage collection looks at it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Group and version of the owner.
    #[serde(default)]
    pub api_version: Box<str>,
    /// Kind of the owner.
    #[serde(default)]
    pub kind: Box<str>,
    /// Name of the owner.
    #[serde(default)]
    pub name: Box<str>,
    /// Identity of the owner.
    #[serde(default)]
    pub uid: Box<str>,
    /// A foreground delete of the owner waits for this object.
    #[serde(default)]
    pub block_owner_deletion: bool,
}

/// The part of `metadata` that the server itself looks at.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Identity.
    pub uid: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// For selectors.
    pub labels: Map<String, Value>,
    /// Who must let go before the object can vanish.
    pub finalizers: Vec<Box<str>>,
    /// For garbage collection.
    pub owner_references: Vec<Owner>,
    /// Set once a delete was accepted.
    pub deletion_timestamp: Option<Box<str>>,
    /// Birth.
    pub creation_timestamp: Option<Box<str>>,
}

impl Object {
    /// An object from its stored bytes.
    pub fn new(revision: u64, json: Bytes) -> Self {
        Self {
            revision,
            json,
            metadata: OnceLock::new(),
            unseen: AtomicU64::new(0),
        }
    }

    /// Stands for what was written with the object and is not shown; zero if nothing was. It is
    /// forgotten when the server stops.
    pub fn unseen(&self) -> u64 {
        self.unseen.load(Ordering::Relaxed)
    }

    /// Remembers what was written and is not shown.
    pub fn hold_unseen(&self, mark: u64) {
        self.unseen.store(mark, Ordering::Relaxed);
    }

    /// The object as it would be stored, in the answer to a dry run of a create.
    pub fn unstored(value: &Value) -> Self {
        Self::new(0, value.to_string().into())
    }

    /// The object as it would be stored, shown at the revision it has now.
    pub fn pretended(value: &Value, revision: u64) -> Self {
        Self::new(revision, encode(value, revision))
    }

    /// The revision of the write that made this version.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The whole object.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// Refuses what is too large to be stored. An object that is going may take a little more: the
    /// marks of its removal must find room on the largest.
    pub fn check_size(&self) -> Result<(), Error> {
        const MARKS: usize = 64 << 10;
        let bytes = self.json.len();
        if bytes <= LARGEST_OBJECT {
            return Ok(());
        }
        let going = self.metadata().deletion_timestamp.is_some();
        let limit = LARGEST_OBJECT + if going { MARKS } else { 0 };
        if bytes <= limit {
            return Ok(());
        }
        Err(Error::TooLarge { bytes, limit })
    }

    /// The object without its opening brace, `kind` and `apiVersion`, as items of built-in lists
    /// are written: `"metadata":{…},…}`.
    pub fn body(&self) -> &[u8] {
        let start = find(&self.json, METADATA).unwrap_or(1);
        &self.json[start..]
    }

    /// The object parsed.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    /// The same state shown at another revision, as when it leaves a selector.
    pub fn at_revision(&self, revision: u64) -> Bytes {
        let Some(at) = find(&self.json, METADATA) else {
            return self.json.clone();
        };
        let start = at + METADATA.len();
        let digits = self.json[start..]
            .iter()
            .take_while(|&&b| b != b'"')
            .count();
        let mut json = Vec::with_capacity(self.json.len() + 8);
        json.extend_from_slice(&self.json[..start]);
        let _ = write!(json, "{revision}");
        json.extend_from_slice(&self.json[start + digits..]);
        json.into()
    }

    /// The server's view of `metadata`, parsed on first use.
    pub fn metadata(&self) -> &Metadata {
        #[derive(Deserialize)]
        struct Partial {
            metadata: Box<Metadata>,
        }
        self.metadata.get_or_init(|| {
            serde_json::from_slice::<Partial>(&self.json)
                .map(|partial| partial.metadata)
                .unwrap_or_default()
        })
    }

    /// Whether the object may have owners, told without parsing.
    pub fn may_have_owners(&self) -> bool {
        find(&self.json, b"\"ownerReferences\"").is_some()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({})", String::from_utf8_lossy(&self.json))
    }
}

/// The stored form of `value` at `revision`.
pub fn encode(value: &Value, revision: u64) -> Bytes {
    let mut json = Vec::with_capacity(512);
    json.extend_from_slice(b"{\"kind\":");
    append(&mut json, &value["kind"]);
    json.extend_from_slice(b",\"apiVersion\":");
    append(&mut json, &value["apiVersion"]);
    json.push(b',');
    json.extend_from_slice(METADATA);
    let _ = write!(json, "{revision}\"");
    for (key, field) in entries(&value["metadata"]) {
        if key != "resourceVersion" {
            append_entry(&mut json, key, field);
        }
    }
    json.push(b'}');
    for (key, field) in entries(value) {
        if !matches!(key.as_str(), "kind" | "apiVersion" | "metadata") {
            append_entry(&mut json, key, field);
        }
    }
    json.push(b'}');
    json.shrink_to_fit();
    json.into()
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn append_entry(json: &mut Vec<u8>, key: &str, value: &Value) {
    json.push(b',');
    // Writing into a vector and of a plain string cannot fail.
    let _ = serde_json::to_writer(&mut *json, key);
    json.push(b':');
    append(json, value);
}

fn append(json: &mut Vec<u8>, value: &Value) {
    let _ = serde_json::to_writer(json, value);
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}
