//! Documents, their keys, and what a worker holds of them.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The part of a collection that a document belongs to: the subscription that owns it, or the region.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(String);

impl Partition {
    /// The documents of a subscription.
    pub fn subscription(id: &str) -> Self {
        Self(id.to_ascii_lowercase())
    }

    /// The documents that belong to the region and to no subscription.
    pub fn region() -> Self {
        Self(String::new())
    }

    /// The name of the partition.
    pub fn name(&self) -> &str {
        &self.0
    }

    pub(crate) fn from_name(name: String) -> Self {
        Self(name)
    }
}

/// The documents that a call may see. It is an argument of every call, so that none forgets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// Those of one partition.
    Partition(&'a Partition),
    /// All of them: for backends and administrators.
    Everywhere,
}

impl Scope<'_> {
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Partition(partition) => Some(partition.name()),
            Self::Everywhere => None,
        }
    }
}

/// Where a document is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentKey {
    /// The collection.
    pub collection: &'static str,
    /// The partition.
    pub partition: Partition,
    /// The id, unique in the partition.
    pub id: String,
}

impl DocumentKey {
    /// The key of the document `id`.
    pub fn new(collection: &'static str, partition: &Partition, id: impl Into<String>) -> Self {
        Self {
            collection,
            partition: partition.clone(),
            id: id.into(),
        }
    }
}

impl fmt::Display for DocumentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.collection, self.id)
    }
}

/// The version of a document. No two versions of any document share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Etag(pub i64);

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

/// A document as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Where it is.
    pub key: DocumentKey,
    /// Its version.
    pub etag: Etag,
    /// Its content. Secure fields are sealed.
    pub body: Value,
    /// When it was written, in milliseconds since 1970, by the clock of the database.
    pub updated_at: i64,
}

/// A value that no other document of the partition has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueKey {
    /// What the value is, as in an error.
    pub name: &'static str,
    /// The value.
    pub value: String,
}

/// What a worker holds while it works on a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The document.
    pub key: DocumentKey,
    /// The worker.
    pub owner: String,
    /// Grows with every claim in the store. A write with an older fence than the newest claim fails.
    pub fence: i64,
    /// How often the document was claimed since work on it last made progress.
    pub dequeues: i64,
}

/// A document that a worker has claimed.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// The document.
    pub document: Document,
    /// What the worker holds.
    pub lease: Lease,
}

/// How the work on a document stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkState {
    /// The queue that the document waits in.
    pub queue: Option<String>,
    /// The worker that holds it, if its lease has not expired.
    pub owner: Option<String>,
    /// How often it was claimed since work on it last made progress.
    pub dequeues: i64,
}

/// Which documents to list.
#[derive(Debug, Clone, Copy)]
pub struct ListRequest<'a> {
    /// The collection.
    pub collection: &'static str,
    /// The documents that the caller may see.
    pub scope: Scope<'a>,
    /// Only ids that begin so.
    pub prefix: &'a str,
    /// Only documents after this partition and id, in the order of both.
    pub after: Option<(&'a str, &'a str)>,
    /// The maximum number of documents.
    pub limit: usize,
}

/// A position in the change feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Cursor {
    pub(crate) transaction: i64,
    pub(crate) revision: i64,
    /// The newest number of the database when it was read: it says what the reader may know, also in a
    /// collection that seldom changes.
    #[serde(default)]
    pub(crate) seen: i64,
}

impl Cursor {
    /// The newest number that the reader may know.
    pub(crate) fn newest(self) -> i64 {
        self.seen.max(self.revision)
    }
}

/// The newest change of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The document.
    pub key: DocumentKey,
    /// Its content, or nothing after its deletion.
    pub document: Option<Document>,
}

/// Changes since a position.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// The changes, in an order in which no earlier one can still appear.
    pub changes: Vec<Change>,
    /// Where the next read continues.
    pub cursor: Cursor,
}
