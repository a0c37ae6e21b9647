//! Images in registries: names, digests, manifests, layers, credentials, and a client for registries.
//!
//! Everything but [`client`] and what is built on it is pure. The types of manifests are those of `oci-spec`,
//! which also read Docker's; the bytes of a manifest are kept as they were received, because its digest is
//! the digest of these bytes.
//!
//! Invariants:
//! - bytes that came from a registry are used only after their digest was checked;
//! - nothing that a registry sends is read without a limit;
//! - credentials are sent to the registry that they belong to, and to no other host.

// In the order of dependencies.
pub mod digest;

pub mod reference;

pub mod media_type;

pub mod manifest;

pub mod platform;

pub mod layer;

pub mod content_cache;

pub mod credentials;

pub mod challenge;

pub mod registry_backoff;

pub mod client;

pub mod image_folder;

pub mod transfer;
