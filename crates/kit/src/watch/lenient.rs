//! An object that may be other than its kind should be.

use std::borrow::Cow;

use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

/// An object, or what can be said of one that cannot be decoded: without this, one bad object would
/// end the list or the watch that it is in.
///
/// Like [`kube::core::DeserializeGuard`], but it asks for metadata alone where `K` does, and holds
/// no second copy of the object while it is read.
#[derive(Debug, Clone)]
pub struct Lenient<K>(pub(super) Result<K, Invalid>);

#[derive(Debug, Clone)]
pub(super) struct Invalid {
    pub(super) metadata: ObjectMeta,
    pub(super) problem: String,
}

/// The part that even a bad object has.
#[derive(Deserialize)]
struct MetadataAlone {
    #[serde(default)]
    metadata: ObjectMeta,
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Lenient<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        match serde_json::from_str(text.get()) {
            Ok(object) => Ok(Self(Ok(object))),
            Err(problem) => {
                let alone: MetadataAlone =
                    serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
                Ok(Self(Err(Invalid {
                    metadata: alone.metadata,
                    problem: problem.to_string(),
                })))
            }
        }
    }
}

impl<K: Resource> Resource for Lenient<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn metadata_api() -> bool {
        K::metadata_api()
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
        self.0
            .as_ref()
            .map_or_else(|invalid| &invalid.metadata, K::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0
            .as_mut()
            .map_or_else(|invalid| &mut invalid.metadata, K::meta_mut)
    }
}
