//! A tamper-evident log of all writes: what was done, by which manager and when.
//!
//! A file in the data folder has one record per line. Each record contains a hash over the previous
//! record and itself, so an edited, moved or missing record breaks the chain. The newest hash is stored
//! in an object of the API, the anchor, so that a truncated or rewritten file is detected as well.
//! [`verify`] is pure and names the faulty record. A full file is renamed, and the chain continues in a
//! new one; no file is ever removed.
//!
//! Invariants:
//! - a record is on disk before the next one is written;
//! - writers wait while the file cannot be written, so that no record is missing;
//! - an anchor is only replaced by one that the chain in the file leads to.

mod anchor;
mod file;
mod parts;
mod record;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

pub use self::{
    anchor::{Anchor, AnchorOptions},
    file::{Error, audit_exists, verify_file},
    record::{AuditedAction, ChainHead},
    verify::{ChainFault, verify},
    writer::{Audit, AuditWriter},
};
