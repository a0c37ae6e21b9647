//! What is in the server, kept at hand: one watch for each kind and scope of a process.
//!
//! Whoever asks for a kind gets the [`Cache`] that everybody else has. It can be read at any time
//! and followed: a follower is told of everything that is there and then of every change, deletes
//! among them, also of those that happened while the watch was down.
//!
//! Invariants:
//! - a follower that was told of an object is told of its end, also where another has its name now;
//! - an object never goes back to an earlier version;
//! - an object that cannot be decoded is reported, stays as it was last readable, and hides nobody
//!   else;
//! - managed fields are not kept, nor is anything twice.

mod cache;
mod contents;
mod echo;
mod entry;
mod index;
mod lenient;
mod metadata;
mod service;
#[cfg(test)]
mod tests;

pub(crate) use self::service::Waits;
pub use self::{
    cache::{Cache, Late},
    contents::{Change, Unreadable},
    index::Index,
    lenient::Lenient,
    metadata::Metadata,
    service::{Ended, Selection, WatchService, WatchState, Watches},
};
