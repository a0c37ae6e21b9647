//! What a cache has to know of its objects.

use kube::{Resource, api::ObjectMeta};

use super::by_name::Named;

/// What a cache has to know of its objects. Every [`Resource`] is one.
///
/// A kind with very many objects has a type of its own that implements this in place of [`Resource`], because
/// the metadata of a resource takes several hundred bytes even where it says little: see
/// [`Watches::compact_cache`](super::Watches::compact_cache).
pub trait CachedObject {
    /// The namespace, which is empty for cluster-scoped objects, and the name.
    fn cached_key(&self) -> (&str, &str);
    /// Whether this is its uid.
    fn has_uid(&self, uid: &str) -> bool;
    /// Whether the other has the same uid, and thus is a version of the same object.
    fn has_uid_of(&self, other: &Self) -> bool;
    /// The resource version as a number, or 0 if it is none.
    fn version_number(&self) -> u64;
    /// Whether its deletion was asked for.
    fn is_terminating(&self) -> bool;
    /// Drops what no reader of a cache needs.
    fn strip(&mut self);
}

impl<K: Resource> CachedObject for K {
    fn cached_key(&self) -> (&str, &str) {
        self.meta().namespace_and_name()
    }

    fn has_uid(&self, uid: &str) -> bool {
        self.meta().uid.as_deref() == Some(uid)
    }

    fn has_uid_of(&self, other: &Self) -> bool {
        self.meta().uid == other.meta().uid
    }

    fn version_number(&self) -> u64 {
        version(self.meta())
    }

    fn is_terminating(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    /// No controller reads the managed fields.
    fn strip(&mut self) {
        self.meta_mut().managed_fields = None;
    }
}

/// Resource versions are increasing numbers: the API guarantees it since 1.35, and servers did so
/// before.
pub(super) fn version(metadata: &ObjectMeta) -> u64 {
    let version = metadata.resource_version.as_deref();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}
