//! Writes of whole objects of a known type, for controllers that own everything they write.
//!
//! The same guarantees as for a plan: only by a leader, only to the object that was read. Names are
//! chosen by the caller, so a create that is sent twice makes one object.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    api::{DeleteParams, DynamicObject, GetParams, PostParams, Preconditions},
    core::{PartialObjectMeta, Request, request},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{Error, ObjectRef, Write, Writer, writer::addresses};
use crate::{key::Key, planted};

/// An object type that can be written as a whole.
pub trait Object:
    Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync
{
}

impl<K> Object for K where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync
{
}

/// An object of a type that is known at compile time, or of a kind that is only known at run time.
pub(super) trait Writable:
    Resource + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync
{
}

impl<K> Writable for K where
    K: Resource + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync
{
}

impl Writer {
    /// Creates `object`. None if an object of that name exists, possibly from an earlier attempt whose
    /// response was lost.
    pub async fn create<K: Object>(&self, object: &K) -> Result<Option<K>, Error> {
        self.create_as(&(), object).await
    }

    /// The same for any type.
    pub(super) async fn create_as<K: Writable>(
        &self,
        kind: &K::DynamicType,
        object: &K,
    ) -> Result<Option<K>, Error> {
        let key = Key::of(object);
        planted!(WriteToldWhole => tracing::debug!(?object, "create"));
        let request = at::<K>(kind, &key).create(&self.post_params(), body(object));
        match self
            .send(self.describe::<K>("create", kind, &key, None), request)
            .await
        {
            Ok(made) => Ok(Some(self.await_object(kind, made))),
            Err(Error::Timeout { .. }) if planted!(LateIsDone) => Ok(Some(object.clone())),
            Err(Error::Refused { source, .. }) if already_exists(&source) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the object with `object`; refused if its `resourceVersion` is no longer the newest.
    pub async fn replace<K: Object>(&self, object: &K) -> Result<K, Error> {
        self.replace_as(&(), object).await
    }

    /// The same for any type.
    pub(super) async fn replace_as<K: Writable>(
        &self,
        kind: &K::DynamicType,
        object: &K,
    ) -> Result<K, Error> {
        let key = Key::of(object);
        let request = at::<K>(kind, &key).replace(key.name(), &self.post_params(), body(object));
        let write = self.describe::<K>("replace", kind, &key, None);
        let written = self.send(write, request).await?;
        Ok(self.await_object(kind, written))
    }

    /// Replaces the status of the object, under the same condition.
    pub async fn replace_status<K: Object>(&self, object: &K) -> Result<K, Error> {
        let key = Key::of(object);
        let request = at::<K>(&(), &key);
        let request =
            request.replace_subresource("status", key.name(), &self.post_params(), body(object));
        let write = self.describe::<K>("replace", &(), &key, Some("status"));
        let written = self.send(write, request).await?;
        Ok(self.await_object(&(), written))
    }

    /// Posts `content` to a subresource of an object, such as `binding`, and returns the response.
    pub async fn post<K: Object, T: Serialize, R: DeserializeOwned>(
        &self,
        key: &Key,
        subresource: &str,
        content: &T,
    ) -> Result<R, Error> {
        let request = at::<K>(&(), key);
        let request =
            request.create_subresource(subresource, key.name(), &self.post_params(), body(content));
        let write = self.describe::<K>("post", &(), key, Some(subresource));
        self.send(write, request).await
    }

    /// Reads from the server, not from a cache, that `object` still exists with its uid and without a
    /// deletion timestamp, and returns its current metadata. [`Error::Conflict`] otherwise: objects
    /// created for it now would have no owner.
    pub async fn confirm<K: Object>(&self, object: &K) -> Result<ObjectMeta, Error> {
        let key = Key::of(object);
        planted!(ConfirmUnasked => return Ok(object.meta().clone()));
        let request = at::<K>(&(), &key).get_metadata(key.name(), &GetParams::default());
        self.confirm_uid(&key, object.meta().uid.as_deref(), request)
            .await
    }

    /// The same for the owner of an object in a plan, if it has one.
    pub(super) async fn confirm_owner(&self, owner: Option<&ObjectRef>) -> Result<(), Error> {
        let Some(ObjectRef { kind, key, uid }) = owner else {
            return Ok(());
        };
        planted!(ConfirmUnasked => return Ok(()));
        let request = at::<DynamicObject>(&kind.resource, key);
        let request = request.get_metadata(key.name(), &GetParams::default());
        self.confirm_uid(key, Some(uid), request).await.map(drop)
    }

    async fn confirm_uid(
        &self,
        key: &Key,
        uid: Option<&str>,
        request: Result<http::Request<Vec<u8>>, request::Error>,
    ) -> Result<ObjectMeta, Error> {
        let request = request.map_err(|error| invalid_request(key, error))?;
        let call = self
            .client()
            .request::<PartialObjectMeta<DynamicObject>>(request);
        let live = self.request(key, call).await?.metadata;
        let same = live.uid.as_deref() == uid || planted!(ConfirmByName);
        if same && live.deletion_timestamp.is_none() {
            Ok(live)
        } else {
            Err(Error::Conflict(key.clone()))
        }
    }

    /// Reads the object from the server, for callers that are about to change an object that is not
    /// cached.
    pub async fn find<K: Object>(&self, key: &Key) -> Result<Option<K>, Error> {
        self.find_as(&(), key).await
    }

    /// The same for any type.
    pub(super) async fn find_as<K: Writable>(
        &self,
        kind: &K::DynamicType,
        key: &Key,
    ) -> Result<Option<K>, Error> {
        let request = at::<K>(kind, key).get(key.name(), &GetParams::default());
        let found = self.find_text(key, request).await?;
        found.map(|text| decoded(key, &text)).transpose()
    }

    /// Deletes the `object` that was read, by its uid, with background propagation; with its own grace
    /// period if none is given. It is no error if the object is gone.
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
        let request = at::<K>(&(), &key).delete(key.name(), &parameters);
        let write = self.describe::<K>("delete", &(), &key, None);
        let request = request.map_err(|error| invalid_request(&key, error))?;
        let call = self.client().request::<serde_json::Value>(request);
        let call = async {
            call.await?;
            let uid = object.meta().uid.as_deref().unwrap_or_default();
            self.await_deleted(&addresses::<K>(&(), &key), &key, uid);
            Ok(())
        };
        self.perform_delete(write, call).await
    }

    /// Holds the current reconcile's key back until the watches show the object. Returns the object.
    fn await_object<K: Writable>(&self, kind: &K::DynamicType, written: K) -> K {
        self.await_written(&addresses::<K>(kind, &Key::of(&written)), &written);
        written
    }

    fn post_params(&self) -> PostParams {
        PostParams {
            field_manager: Some(self.manager().to_owned()),
            ..PostParams::default()
        }
    }

    fn describe<K: Resource>(
        &self,
        verb: &'static str,
        kind: &K::DynamicType,
        key: &Key,
        subresource: Option<&str>,
    ) -> Write {
        Write {
            manager: self.manager().to_owned(),
            verb,
            kind: format!("{} {}", K::api_version(kind), K::kind(kind)),
            key: key.clone(),
            subresource: subresource.map(str::to_owned),
            reason: self.reason.clone(),
        }
    }

    async fn send<R: DeserializeOwned>(
        &self,
        write: Write,
        request: Result<http::Request<Vec<u8>>, request::Error>,
    ) -> Result<R, Error> {
        let key = write.key.clone();
        let text = self.send_text(write, request).await?;
        decoded(&key, &text)
    }

    /// Sends the write and returns the answer as it is. Not generic, so that sending is compiled once and
    /// not for each kind.
    async fn send_text(
        &self,
        write: Write,
        request: Result<http::Request<Vec<u8>>, request::Error>,
    ) -> Result<String, Error> {
        let request = request.map_err(|error| invalid_request(&write.key, error))?;
        self.perform(write, self.client().request_text(request))
            .await
    }

    /// The same for a read. None if there is no such object.
    async fn find_text(
        &self,
        key: &Key,
        request: Result<http::Request<Vec<u8>>, request::Error>,
    ) -> Result<Option<String>, Error> {
        let request = request.map_err(|error| invalid_request(key, error))?;
        let call = self.client().request_text(request);
        match self.request(key, call).await {
            Ok(found) => Ok(Some(found)),
            Err(Error::Conflict(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn decoded<R: DeserializeOwned>(key: &Key, text: &str) -> Result<R, Error> {
    serde_json::from_str(text).map_err(|error| Error::Refused {
        key: key.clone(),
        source: Box::new(kube::Error::SerdeError(error)),
    })
}

fn at<K: Resource>(kind: &K::DynamicType, key: &Key) -> Request {
    let namespace = Some(key.namespace()).filter(|namespace| !namespace.is_empty());
    Request::new(K::url_path(kind, namespace))
}

fn invalid_request(key: &Key, error: request::Error) -> Error {
    Error::Refused {
        key: key.clone(),
        source: Box::new(kube::Error::BuildRequest(error)),
    }
}

/// Serializing the types of the API does not fail.
fn body(content: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(content).unwrap_or_default()
}

fn already_exists(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_already_exists())
}
