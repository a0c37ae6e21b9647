//! A stored object: its JSON bytes, with the revision already inside.
//!
//! Gets, lists and watches copy these bytes; only writes and selectors parse them. The bytes begin
//! with `kind`, `apiVersion` and `metadata.resourceVersion` in this order, so that a list can leave
//! out the first two and a revision can be replaced without parsing.

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

use super::{Error, MAX_OBJECT_BYTES};

const METADATA: &[u8] = b"\"metadata\":{\"resourceVersion\":\"";

/// One stored version of an object.
pub struct Object {
    revision: u64,
    json: Bytes,
    metadata: OnceLock<Box<Metadata>>,
    /// See [`Self::hidden`].
    hidden: AtomicU64,
}

/// An owner reference, as far as garbage collection needs it.
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
    /// The owner's uid.
    #[serde(default)]
    pub uid: Box<str>,
    /// A foreground delete of the owner waits for this object.
    #[serde(default)]
    pub block_owner_deletion: bool,
}

/// The part of `metadata` that the server itself reads.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    pub uid: Box<str>,
    pub name: Box<str>,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// For selectors.
    pub labels: Map<String, Value>,
    /// They keep a deleted object until they are removed.
    pub finalizers: Vec<Box<str>>,
    /// For garbage collection.
    pub owner_references: Vec<Owner>,
    /// Set once the object is deleted.
    pub deletion_timestamp: Option<Box<str>>,
    pub creation_timestamp: Option<Box<str>>,
}

impl Object {
    /// An object from its stored bytes.
    pub fn new(revision: u64, json: Bytes) -> Self {
        Self {
            revision,
            json,
            metadata: OnceLock::new(),
            hidden: AtomicU64::new(0),
        }
    }

    /// Identifies parts that were written with the object and are not shown; zero if there are
    /// none. It is lost when the server stops.
    pub fn hidden(&self) -> u64 {
        self.hidden.load(Ordering::Relaxed)
    }

    /// Records parts that were written and are not shown.
    pub fn set_hidden(&self, mark: u64) {
        self.hidden.store(mark, Ordering::Relaxed);
    }

    /// The object as it would be stored, for the response to a dry run of a create.
    pub fn unstored(value: &Value) -> Self {
        Self::new(0, value.to_string().into())
    }

    /// The object as it would be stored, shown at its present revision.
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

    /// Refuses an object that is too large. A terminating object may be a little larger: its
    /// deletion timestamp must fit on the largest.
    pub fn check_size(&self) -> Result<(), Error> {
        const DELETION_MARKS_BYTES: usize = 64 << 10;
        let bytes = self.json.len();
        if bytes <= MAX_OBJECT_BYTES {
            return Ok(());
        }
        let going = self.metadata().deletion_timestamp.is_some();
        let limit = MAX_OBJECT_BYTES + if going { DELETION_MARKS_BYTES } else { 0 };
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

    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    /// The same state at another revision, as when it stops matching a selector.
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

    /// The parsed `metadata`, cached on first use.
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

    /// Whether the object may have owners, decided without parsing.
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
    // Writing a plain string into a vector cannot fail.
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
