//! Objects that may not match the schema of their kind.

use kube::{Resource, api::ObjectMeta};

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

impl<K: Resource> Decoded<K> {
    pub(super) fn meta(&self) -> &ObjectMeta {
        match &self.0 {
            Ok(object) => object.meta(),
            Err(failure) => &failure.metadata,
        }
    }
}
