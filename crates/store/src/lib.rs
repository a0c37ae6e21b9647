//! Documents with etags, leases and a change feed: in memory, on SQLite and on PostgreSQL.
//!
//! A [`Store`] keeps JSON documents in collections and partitions. All changes go through a
//! [`Commit`]: several documents, a row for the outbox and a row for the audit in one transaction.
//! A document may wait in a queue; a worker claims it with a [`Lease`], whose fence every write of the
//! worker carries. This crate depends on no other crate of the workspace.
//!
//! Invariants:
//! - a document is replaced only in the version that was read, or under a lease that still holds;
//! - times of leases and expiry are those of the database, never of a client;
//! - every change, also a deletion, reaches every reader of the change feed, or the reader is told
//!   that it must list again;
//! - secure fields are sealed wherever a document is stored.

// In the order of dependencies: a module uses only those above it.

mod error;

mod document;

mod commit;

mod seal;

mod memory;

mod sql;

mod store;

pub use self::{
    commit::{AuditRow, Commit, Precondition, QueueChange, Write},
    document::{
        Change, Changes, Claimed, Cursor, Document, DocumentKey, Etag, Lease, ListRequest,
        Partition, Scope, UniqueKey, WorkState,
    },
    error::Error,
    seal::{KeyRing, SecureFields},
    store::{CallObserver, MemoryClock, Store, StoreCall, StoreOptions},
};
