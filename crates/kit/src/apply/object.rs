//! Writes of whole objects of a known type, for controllers that own everything they write.
//!
//! The same promises as for a plan: only by a leader, only to the object that was looked at. Names
//! are the caller's, so a create that is sent twice makes one object.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    api::{DeleteParams, GetParams, PostParams, Preconditions},
    core::{PartialObjectMeta, Request, request},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{Error, Hand, Write, hand::addresses};
use crate::{
    echo::{removed, wrote},
    key::Key,
    planted,
};

/// What can be written whole.
pub trait Object:
    Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync
{
}

impl<K> Object for K where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync
{
}

impl Hand {
    /// Makes `object`. None if there is one of that name, be it ours from an attempt whose answer
    /// was lost.
    pub async fn create<K: Object>(&self, object: &K) -> Result<Option<K>, Error> {
        let key = Key::of(object);
        planted!(WriteToldWhole => tracing::debug!(?object, "create"));
        let request = at::<K>(&key).create(&self.posting(), body(object));
        match self
            .send(self.writing::<K>("create", &key, None), request)
            .await
        {
            Ok(made) => Ok(Some(noted(made))),
            Err(Error::Late { .. }) if planted!(LateIsDone) => Ok(Some(object.clone())),
            Err(Error::Refused { source, .. }) if already_exists(&source) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes `object` the state of the object that it was read as: its `resourceVersion` decides.
    pub async fn replace<K: Object>(&self, object: &K) -> Result<K, Error> {
        let key = Key::of(object);
        let request = at::<K>(&key).replace(key.name(), &self.posting(), body(object));
        let write = self.writing::<K>("replace", &key, None);
        self.send(write, request).await.map(noted)
    }

    /// The same for its status.
    pub async fn replace_status<K: Object>(&self, object: &K) -> Result<K, Error> {
        let key = Key::of(object);
        let request = at::<K>(&key);
        let request =
            request.replace_subresource("status", key.name(), &self.posting(), body(object));
        let write = self.writing::<K>("replace", &key, Some("status"));
        self.send(write, request).await.map(noted)
    }

    /// Posts `content` to a part of an object, such as `binding`, and says what came back.
    pub async fn post<K: Object, T: Serialize, R: DeserializeOwned>(
        &self,
        key: &Key,
        part: &str,
        content: &T,
    ) -> Result<R, Error> {
        let request = at::<K>(key);
        let request = request.create_subresource(part, key.name(), &self.posting(), body(content));
        let write = self.writing::<K>("post", key, Some(part));
        self.send(write, request).await
    }

    /// Asks the server itself, not a cache, whether `object` is still there, the same, and to stay.
    /// [`Error::Replaced`] if not: whatever would be made for it now would be made for nobody. Says
    /// its metadata as they are now.
    pub async fn confirm<K: Object>(&self, object: &K) -> Result<ObjectMeta, Error> {
        let key = Key::of(object);
        planted!(ConfirmUnasked => return Ok(object.meta().clone()));
        let request = at::<K>(&key).get_metadata(key.name(), &GetParams::default());
        let request = request.map_err(|error| unsendable(&key, error))?;
        let call = self.client().request::<PartialObjectMeta<K>>(request);
        let live = self.answered(&key, call).await?.metadata;
        let same = live.uid == object.meta().uid || planted!(ConfirmByName);
        if same && live.deletion_timestamp.is_none() {
            Ok(live)
        } else {
            Err(Error::Replaced(key))
        }
    }

    /// The object as the server itself has it now, for whoever is about to change what no cache shows.
    pub async fn find<K: Object>(&self, key: &Key) -> Result<Option<K>, Error> {
        let request = at::<K>(key).get(key.name(), &GetParams::default());
        let request = request.map_err(|error| unsendable(key, error))?;
        let call = self.client().request::<K>(request);
        match self.answered(key, call).await {
            Ok(found) => Ok(Some(found)),
            Err(Error::Replaced(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes the very `object` that was looked at, in the background; with a grace period of its
    /// own if none is given. It is no error if it is gone.
    pub async fn remove<K: Object>(&self, object: &K, grace: Option<u32>) -> Result<(), Error> {
        let key = Key::of(object);
        let parameters = DeleteParams {
            grace_period_seconds: grace,
            preconditions: Some(Preconditions {
                uid: object.meta().uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        let request = at::<K>(&key).delete(key.name(), &parameters);
        let write = self.writing::<K>("delete", &key, None);
        let request = request.map_err(|error| unsendable(&key, error))?;
        let call = self.client().request::<serde_json::Value>(request);
        let call = async {
            call.await?;
            let uid = object.meta().uid.as_deref().unwrap_or_default();
            removed(&addresses::<K>(&(), &key), &key, uid);
            Ok(())
        };
        self.take_away(write, call).await
    }

    fn posting(&self) -> PostParams {
        PostParams {
            field_manager: Some(self.manager().to_owned()),
            ..PostParams::default()
        }
    }

    fn writing<K: Object>(&self, verb: &'static str, key: &Key, part: Option<&str>) -> Write {
        Write {
            manager: self.manager().to_owned(),
            verb,
            kind: format!("{} {}", K::api_version(&()), K::kind(&())),
            key: key.clone(),
            part: part.map(str::to_owned),
        }
    }

    async fn send<R: DeserializeOwned>(
        &self,
        write: Write,
        request: Result<http::Request<Vec<u8>>, request::Error>,
    ) -> Result<R, Error> {
        let request = request.map_err(|error| unsendable(&write.key, error))?;
        self.perform(write, self.client().request(request)).await
    }
}

/// The same object, which the watches are to show before whoever wrote it looks again.
fn noted<K: Object>(written: K) -> K {
    let version = written.meta().resource_version.as_deref();
    wrote(&addresses::<K>(&(), &Key::of(&written)), version);
    written
}

fn at<K: Object>(key: &Key) -> Request {
    let namespace = Some(key.namespace()).filter(|namespace| !namespace.is_empty());
    Request::new(K::url_path(&(), namespace))
}

fn unsendable(key: &Key, error: request::Error) -> Error {
    Error::Refused {
        key: key.clone(),
        source: Box::new(kube::Error::BuildRequest(error)),
    }
}

/// Types of the API have no way to fail here.
fn body(content: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(content).unwrap_or_default()
}

fn already_exists(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_already_exists())
}
