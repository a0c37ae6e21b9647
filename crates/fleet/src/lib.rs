//! An ARM-shaped API whose operations survive, and clusters installed through Hive.
//!
//! The frontend takes a request in one transaction, and the backend works on it for an hour. This crate
//! depends on `kit` and `store`, and on no other area.
//!
//! Invariants:
//! - a request is decided by a pure function of documents, and done by one transaction or not at all;
//! - an operation ends exactly once, in the transaction that ends the work on its cluster;
//! - every write of a worker carries the fence of its lease;
//! - no secret is in a log, an error, a metric, or a stored document in plain text.

// In the order of dependencies: a module uses only those above it. `cargo xtask check` enforces it.

pub mod cloud_error;

pub mod resource_id;

pub mod cidr;

pub mod vm_sizes;

pub mod state;

pub mod api;

pub mod validation;

pub mod documents;

pub mod catalogue;

pub mod cluster;

pub mod cluster_api;

pub mod install;

pub mod enrichment;

pub mod backend;

pub mod http;

pub mod area;

#[cfg(test)]
mod fixtures;
