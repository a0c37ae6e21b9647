//! Several writes that happen together or not at all.

use serde_json::Value;

use crate::{
    document::{DocumentKey, Etag, Lease, UniqueKey},
    error::Error,
};

/// What must hold for a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// No document of this id exists.
    Absent,
    /// The document has this version.
    Etag(Etag),
    /// The lease on this document still holds; the document exists in any version.
    Lease(Lease),
    /// The document has this version, and the lease still holds.
    EtagAndLease(Etag, Lease),
}

/// What happens to the work on a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum QueueChange {
    /// Nothing.
    #[default]
    Keep,
    /// It waits in this queue, for any worker: a lease on it ends.
    Queue {
        /// The name of the queue.
        name: &'static str,
        /// How long no worker may claim it, in milliseconds.
        delay: i64,
        /// Whether the count of claims starts again.
        reset: bool,
    },
    /// No work is left: a lease on it ends.
    Done,
}

/// One write of a commit, or what must hold for the others.
#[derive(Debug, Clone)]
pub enum Write {
    /// Creates or replaces a document.
    Put {
        /// The document.
        key: DocumentKey,
        /// What must hold.
        precondition: Precondition,
        /// The new content.
        body: Value,
        /// All its unique keys.
        unique: Vec<UniqueKey>,
        /// Removes the document after this time, in milliseconds.
        ttl: Option<i64>,
        /// What happens to the work on it.
        queue: QueueChange,
    },
    /// Deletes a document.
    Delete {
        /// The document.
        key: DocumentKey,
        /// What must hold.
        precondition: Precondition,
    },
    /// Checks that a lease still holds; with `progress`, its count of claims starts again.
    Fence {
        /// The lease.
        lease: Lease,
        /// Whether work on the document made progress.
        progress: bool,
    },
    /// Checks that a document has this version, and changes nothing. No other commit changes it before this
    /// one has happened.
    Check {
        /// The document.
        key: DocumentKey,
        /// The version.
        etag: Etag,
    },
}

impl Write {
    /// The document that is written or checked.
    pub fn key(&self) -> &DocumentKey {
        match self {
            Self::Put { key, .. } | Self::Delete { key, .. } | Self::Check { key, .. } => key,
            Self::Fence { lease, .. } => &lease.key,
        }
    }
}

/// A row of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditRow {
    /// Who acted.
    pub actor: String,
    /// What was done.
    pub action: String,
    /// To what.
    pub target: String,
    /// Particulars, without secrets.
    pub detail: String,
}

/// Several writes that happen together or not at all.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    pub(crate) writes: Vec<Write>,
    pub(crate) outbox: Vec<(&'static str, Value)>,
    pub(crate) audit: Vec<AuditRow>,
}

impl Commit {
    /// The same commit with another write.
    pub fn with(mut self, write: Write) -> Self {
        self.writes.push(write);
        self
    }

    /// Creates a document that needs no work and does not expire.
    pub fn create(self, key: DocumentKey, body: Value) -> Self {
        self.put(key, Precondition::Absent, body)
    }

    /// Creates or replaces a document that has no unique keys and does not expire. Its work is kept.
    pub fn put(self, key: DocumentKey, precondition: Precondition, body: Value) -> Self {
        self.with(Write::Put {
            key,
            precondition,
            body,
            unique: Vec::new(),
            ttl: None,
            queue: QueueChange::Keep,
        })
    }

    /// The same commit with a message for another system, delivered at least once.
    pub fn announce(mut self, topic: &'static str, body: Value) -> Self {
        self.outbox.push((topic, body));
        self
    }

    /// The same commit with a row of the audit.
    pub fn audit(mut self, row: AuditRow) -> Self {
        self.audit.push(row);
        self
    }

    /// Refuses what no database should store, and orders the writes so that two commits that touch the
    /// same documents wait for each other instead of deadlocking.
    pub(crate) fn prepare(&mut self) -> Result<(), Error> {
        self.writes.sort_by(|a, b| {
            let order =
                |write: &Write| (!matches!(write, Write::Fence { .. }), write.key().clone());
            order(a).cmp(&order(b))
        });
        for write in &self.writes {
            let key = write.key();
            if key.id.is_empty() || key.id.chars().any(|c| c.is_ascii_uppercase() || c == '\0') {
                let id = &key.id;
                return Err(Error::Invalid(format!(
                    "its id must be lower case and not empty: {id:?}"
                )));
            }
            if let Write::Put { body, .. } = write
                && !body.is_object()
            {
                return Err(Error::Invalid("it must be a JSON object".to_owned()));
            }
        }
        Ok(())
    }

    /// Whether a worker may have something to do after this commit.
    pub(crate) fn queues_work(&self) -> bool {
        self.writes.iter().any(|write| {
            matches!(
                write,
                Write::Put {
                    queue: QueueChange::Queue { .. },
                    ..
                }
            )
        })
    }
}
