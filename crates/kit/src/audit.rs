//! What was done, in whose name and when, so that it cannot be changed unnoticed.
//!
//! A file in the data folder has one record in each line. Each record has a hash over the record
//! before it and itself, so an edit, a move or a gap anywhere breaks the chain; and the newest
//! hash is kept in an object of the API, so that cutting off the end, or writing everything anew,
//! shows as well. [`verify`] is pure and names the record. A file that is full is put aside under
//! another name, and the chain goes on in a new one; none is ever removed.
//!
//! Invariants:
//! - a record is on disk before the one after it is begun;
//! - whoever notes something waits while the file cannot be written: nothing is left out;
//! - an anchor is never replaced by one that its file does not lead to.

mod anchor;
mod file;
mod parts;
mod record;
mod service;
#[cfg(test)]
mod tests;
mod verify;

pub use self::{
    anchor::{Anchor, AnchorOptions},
    file::{Error, is_there, verify_file},
    record::{Deed, Head},
    service::{Audit, AuditService},
    verify::{Fault, verify},
};
