//! Watched objects, held in memory: one watch for each kind and scope of a process.
//!
//! Every caller that asks for a kind gets the same [`Cache`]. It can be read at any time and
//! subscribed to: a subscriber receives every object that is there and then every change, including
//! deletions, and including those that happened while the watch was down.
//!
//! Invariants:
//! - a subscriber that received an object also receives its deletion, even if another object has its
//!   name by then;
//! - an object never goes back to an earlier version;
//! - an object that cannot be decoded is reported, stays in the cache as it was last decoded, and
//!   affects no other object;
//! - managed fields are dropped, and nothing is stored twice;
//! - a watch that no cache handle and no subscriber needs ends a minute later, and its objects are dropped;
//! - a kind that is not served is waited for: only what reads its cache waits.

mod by_name;
mod cache;
mod cached_object;
mod contents;
mod decoded;
mod index;
mod metadata;
mod observed;
mod raw;
mod selector;
#[cfg(test)]
mod tests;
mod watches;

pub use self::{
    cache::{Cache, WatchTimeout},
    cached_object::CachedObject,
    contents::{Change, Trim, UndecodableObject},
    index::Index,
    metadata::Metadata,
    watches::{Selection, WatchRunner, WatchState, Watches, WatchesStopped},
};
