//! Objects that may not match the schema of their kind.

use kube::api::ObjectMeta;

use super::{
    by_name::Named,
    cached_object::{CachedObject, version},
};

/// An object, or the metadata of one that cannot be decoded: without this, one bad object would fail
/// the whole list or watch.
#[derive(Debug, Clone)]
pub(super) struct Decoded<K>(pub(super) Result<K, DecodeFailure>);

/// An object that could not be decoded.
#[derive(Debug, Clone)]
pub(super) struct DecodeFailure {
    pub(super) metadata: ObjectMeta,
    pub(super) problem: String,
}

impl<K: CachedObject> Decoded<K> {
    pub(super) fn version(&self) -> u64 {
        match &self.0 {
            Ok(object) => object.version_number(),
            Err(failure) => version(&failure.metadata),
        }
    }
}

impl<K: CachedObject> Named for Decoded<K> {
    fn namespace_and_name(&self) -> (&str, &str) {
        match &self.0 {
            Ok(object) => object.cached_key(),
            Err(failure) => failure.metadata.namespace_and_name(),
        }
    }
}
