//! Objects of which only the metadata is read.

use std::{borrow::Cow, fmt, marker::PhantomData};

use kube::{Resource, api::ObjectMeta};
use serde::Deserialize;

/// The metadata of a `K`; only that is requested from the server.
///
/// Like [`kube::core::PartialObjectMeta`], but without the kind in each object: it is the same for
/// all of them.
#[derive(Deserialize)]
#[serde(bound = "")]
pub struct Metadata<K> {
    /// The metadata, without managed fields.
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Metadata<K> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Metadata<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Metadata").field(&self.metadata).finish()
    }
}

impl<K: Resource> Resource for Metadata<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn metadata_api() -> bool {
        true
    }

    fn kind(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn plural(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
