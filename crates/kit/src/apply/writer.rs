//! The writer: every write of a controller goes through it.

use std::{sync::Arc, time::Duration};

use kube::{
    Api, Client, Resource,
    api::{
        ApiResource, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, Preconditions,
    },
    core::Status,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    DesiredObject, IfExists, ObjectRef, Plan, PlannedChange, ResourceKind, Write,
    write::{WriteObserver, result_label},
};
use crate::{
    clock::Clock,
    key::Key,
    lease::{Leadership, NotLeading},
    own_writes::{Written, record_delete, record_write},
    planted,
    telemetry::{Telemetry, WriteFinished},
    why::{Code, Coded},
};

/// The time that the server has to respond to a request.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process leads.
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    /// The object has changed since it was read, was replaced by another, or is gone. A new reconcile
    /// resolves it.
    #[error("{0} was changed, replaced or deleted since it was read")]
    Conflict(Key),
    /// The server refused.
    #[error("{key} could not be written")]
    Refused {
        /// The key of the object.
        key: Key,
        /// The response of the server.
        #[source]
        source: Box<kube::Error>,
    },
    /// The server did not respond in time; the write may have happened.
    #[error("no response to a write of {key} within {waited:?}")]
    Timeout {
        /// The key of the object.
        key: Key,
        /// How long the writer waited.
        waited: Duration,
    },
}

/// Makes the writes of a controller: as one field manager, only while this process leads, and each
/// only to the object that the decision was about.
#[derive(Debug, Clone)]
pub struct Writer {
    client: Debuggable,
    /// The name of the cluster, as the watches have it; empty for that of the process itself.
    cluster: Arc<str>,
    manager: String,
    leadership: Leadership,
    clock: Clock,
    timeout: Duration,
    telemetry: Telemetry,
    write_observer: Option<Arc<dyn WriteObserver>>,
    pub(super) reason: Option<Arc<str>>,
}

/// [`Client`] does not implement `Debug`.
#[derive(Clone)]
struct Debuggable(Client);

impl std::fmt::Debug for Debuggable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Writer {
    /// A writer with the field manager `manager`, which writes only under `leadership`.
    pub fn new(
        client: Client,
        manager: impl Into<String>,
        leadership: Leadership,
        clock: Clock,
    ) -> Self {
        Self {
            client: Debuggable(client),
            cluster: Arc::default(),
            manager: manager.into(),
            leadership,
            clock,
            timeout: WRITE_TIMEOUT,
            telemetry: Telemetry::default(),
            write_observer: None,
            reason: None,
        }
    }

    /// The same writer for the cluster that its client and the watches of this name are about.
    pub fn in_cluster(mut self, name: Arc<str>) -> Self {
        self.cluster = name;
        self
    }

    /// The same writer, which reports its writes to `telemetry`.
    pub fn with_telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// The same writer, which reports its writes to `write_observer`.
    pub fn with_write_observer(mut self, write_observer: Arc<dyn WriteObserver>) -> Self {
        self.write_observer = Some(write_observer);
        self
    }

    /// Makes the writes of `plan` in order, up to the first that fails. Returns the written objects.
    pub async fn execute(&self, plan: Plan) -> Result<Vec<DynamicObject>, Error> {
        let mut written = Vec::new();
        for change in plan.changes.into_iter().chain(plan.cleanup) {
            tracing::info!(%change, manager = self.manager, "write");
            written.extend(self.execute_change(change).await?);
        }
        Ok(written)
    }

    /// Makes a single planned write. Returns the written object, if there is one.
    pub async fn execute_change(
        &self,
        change: PlannedChange,
    ) -> Result<Option<DynamicObject>, Error> {
        match change {
            PlannedChange::Create(desired) => {
                let key = desired.key();
                self.ensure_name_is_free(&desired.kind, &key).await?;
                let parameters = PatchParams::apply(&self.manager);
                let made = self.apply(&desired.kind, &key, &desired.object, &parameters);
                made.await.map(Some)
            }
            PlannedChange::Update {
                mut desired, uid, ..
            } => {
                let key = desired.key();
                // With a uid, the server refuses the apply if the object was replaced or is gone.
                desired.object["metadata"]["uid"] = uid.into();
                let parameters = PatchParams::apply(&self.manager).force();
                let changed = self.apply(&desired.kind, &key, &desired.object, &parameters);
                changed.await.map(Some)
            }
            PlannedChange::Delete { object, .. } => {
                let ObjectRef { kind, key, uid } = object;
                self.delete(&kind, &key, uid).await.map(|()| None)
            }
            PlannedChange::DeleteByName { kind, key, .. } => {
                let found: Option<DynamicObject> = self.find_as(&kind.resource, &key).await?;
                if let Some(found) = found {
                    let uid = found.metadata.uid.unwrap_or_default();
                    self.delete(&kind, &key, uid).await?;
                }
                Ok(None)
            }
            PlannedChange::Post {
                object,
                owner,
                if_exists,
                ..
            } => {
                self.confirm_owner(owner.as_ref()).await?;
                self.post_object(object, if_exists).await.map(Some)
            }
            PlannedChange::Replace { object, owner, .. } => {
                self.confirm_owner(owner.as_ref()).await?;
                let desired = dynamic(&object)?;
                let written = self.replace_as(&object.kind.resource, &desired);
                written.await.map(Some)
            }
            PlannedChange::Merge {
                kind,
                metadata,
                subresource,
                patch,
                ..
            } => {
                let written = self.merge(&kind, &metadata, subresource, patch);
                written.await.map(Some)
            }
        }
    }

    /// Reads from the server that no object has the name. An apply would take over an existing object,
    /// and a cache may not show it yet. An object that is created between this read and the apply is
    /// not noticed, because an apply cannot be restricted to creation. The apply then merges into that
    /// object, without force: it is refused where both managers set a field, and otherwise both write
    /// the object from then on.
    async fn ensure_name_is_free(&self, kind: &ResourceKind, key: &Key) -> Result<(), Error> {
        planted!(NameUnasked => return Ok(()));
        let api = self.api(kind, key);
        let found = api.get_metadata_opt(key.name());
        match self.request(key, found).await? {
            Some(_) => Err(Error::Conflict(key.clone())),
            None => Ok(()),
        }
    }

    async fn post_object(
        &self,
        object: DesiredObject,
        if_exists: IfExists,
    ) -> Result<DynamicObject, Error> {
        let (kind, key) = (&object.kind.resource, object.key());
        let mut wanted = dynamic(&object)?;
        if let Some(created) = self.create_as(kind, &wanted).await? {
            return Ok(created);
        }
        if if_exists == IfExists::Conflict {
            return Err(Error::Conflict(key));
        }
        let live: Option<DynamicObject> = self.find_as(kind, &key).await?;
        let live = live.ok_or(Error::Conflict(key))?;
        wanted.metadata = ObjectMeta {
            labels: wanted.metadata.labels,
            owner_references: wanted.metadata.owner_references,
            ..live.metadata
        };
        self.replace_as(kind, &wanted).await
    }

    async fn apply(
        &self,
        kind: &ResourceKind,
        key: &Key,
        object: &Value,
        parameters: &PatchParams,
    ) -> Result<DynamicObject, Error> {
        let api = self.api(kind, key);
        let object = typed(kind, object);
        let patch = Patch::Apply(&object);
        let write = self.write("apply", kind, key, None);
        let written = api.patch(key.name(), parameters, &patch);
        let written = self.perform(write, written).await?;
        self.await_written(&addresses::<DynamicObject>(&kind.resource, key), &written);
        Ok(written)
    }

    /// Writes `status` if it differs from that of `live`. One write, and none if nothing changed; the
    /// whole status is ours.
    pub async fn status(
        &self,
        kind: &ResourceKind,
        live: &DynamicObject,
        status: &Value,
    ) -> Result<Option<DynamicObject>, Error> {
        if live.data["status"] == *status {
            return Ok(None);
        }
        let key = Key::of(live);
        let object = typed(
            kind,
            &json!({"metadata": {"name": key.name(), "uid": live.metadata.uid}, "status": status}),
        );
        let api = self.api(kind, &key);
        let parameters = PatchParams::apply(&self.manager).force();
        let patch = Patch::Apply(&object);
        let written = api.patch_status(key.name(), &parameters, &patch);
        let write = self.write("apply", kind, &key, Some("status"));
        let written = self.perform(write, written).await?;
        self.await_written(&addresses::<DynamicObject>(&kind.resource, &key), &written);
        Ok(Some(written))
    }

    async fn delete(&self, kind: &ResourceKind, key: &Key, uid: String) -> Result<(), Error> {
        let api = self.api(kind, key);
        let preconditions = Preconditions {
            uid: Some(uid.clone()),
            resource_version: None,
        };
        let parameters = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::background()
        };
        let write = self.write("delete", kind, key, None);
        let call = async {
            api.delete(key.name(), &parameters).await?;
            self.await_deleted(&addresses::<DynamicObject>(&kind.resource, key), key, &uid);
            Ok(())
        };
        self.perform_delete(write, call).await
    }

    /// Makes a delete. It is no error if the object is gone. If another object has the name, or a
    /// concurrent change kept the server from deleting, the result is [`Error::Conflict`].
    pub(super) async fn perform_delete(
        &self,
        write: Write,
        call: impl Future<Output = Result<(), kube::Error>>,
    ) -> Result<(), Error> {
        let mut gone = false;
        let call = async {
            let response = call.await;
            gone = matches!(&response, Err(kube::Error::Api(status)) if status.is_not_found());
            gone |= planted!(ConflictIsGone) && response.is_err();
            response
        };
        match self.perform(write, call).await {
            Err(Error::Conflict(_)) if gone => Ok(()),
            outcome => outcome,
        }
    }

    /// Holds the current reconcile's key back until the watches show the write.
    pub(super) fn await_written<K: Resource + Serialize>(&self, addresses: &[String], written: &K) {
        let meta = written.meta();
        let place = Written {
            cluster: &self.cluster,
            addresses,
            key: &Key::of(written),
            uid: meta.uid.as_deref().unwrap_or_default(),
        };
        record_write(&place, meta.resource_version.as_deref(), &|| {
            serde_json::to_value(written).unwrap_or_default()
        });
    }

    /// Holds the current reconcile's key back until the watches show that the object is gone.
    pub(super) fn await_deleted(&self, addresses: &[String], key: &Key, uid: &str) {
        record_delete(&Written::new(&self.cluster, addresses, key, uid));
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client.0
    }

    pub(super) fn manager(&self) -> &str {
        &self.manager
    }

    pub(super) fn write(
        &self,
        verb: &'static str,
        kind: &ResourceKind,
        key: &Key,
        subresource: Option<&str>,
    ) -> Write {
        let ApiResource {
            api_version, kind, ..
        } = &kind.resource;
        Write {
            manager: self.manager.clone(),
            verb,
            kind: format!("{api_version} {kind}"),
            key: key.clone(),
            subresource: subresource.map(str::to_owned),
            reason: self.reason.clone(),
        }
    }

    /// Makes the write, if this process leads, and reports it.
    pub(super) fn perform<T>(
        &self,
        write: Write,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> impl Future<Output = Result<T, Error>> {
        // The future of a request is large, and each caller would embed it once more.
        let call = Box::pin(call);
        async move {
            // Checked immediately before the request is sent, so that a process that was suspended
            // does not send it after its lease has expired.
            let outcome = match self.leadership.check() {
                Ok(_) => {
                    let timeout = self.timeout.min(self.leadership.remaining());
                    self.request_within(timeout, &write.key, call).await
                }
                Err(error) => Err(error.into()),
            };
            self.report(&write, outcome.as_ref().map(|_| ())).await;
            outcome
        }
    }

    async fn report(&self, write: &Write, outcome: Result<(), &Error>) {
        self.telemetry.emit(&WriteFinished {
            manager: &write.manager,
            verb: write.verb,
            kind: &write.kind,
            key: &write.key,
            result: result_label(outcome),
        });
        if let Some(write_observer) = &self.write_observer
            && !matches!(outcome, Err(Error::NotLeading(_)))
        {
            write_observer.on_write(write, outcome).await;
        }
    }

    /// Waits for the response to `call`, a write or a read that precedes one.
    pub(super) async fn request<T>(
        &self,
        key: &Key,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Error> {
        self.request_within(self.timeout, key, call).await
    }

    async fn request_within<T>(
        &self,
        timeout: Duration,
        key: &Key,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Error> {
        match self.clock.within(timeout, call).await {
            Some(Ok(response)) => Ok(response),
            Some(Err(kube::Error::Api(status))) if is_conflict(&status, key) => {
                Err(Error::Conflict(key.clone()))
            }
            Some(Err(source)) => Err(Error::Refused {
                key: key.clone(),
                source: Box::new(source),
            }),
            None => Err(Error::Timeout {
                key: key.clone(),
                waited: timeout,
            }),
        }
    }

    pub(super) fn api(&self, kind: &ResourceKind, key: &Key) -> Api<DynamicObject> {
        let client = self.client.0.clone();
        if kind.namespaced {
            Api::namespaced_with(client, key.namespace(), &kind.resource)
        } else {
            Api::all_with(client, &kind.resource)
        }
    }
}

/// The paths whose watches may show an object: all namespaces, and its own namespace.
pub(super) fn addresses<K: Resource>(kind: &K::DynamicType, key: &Key) -> Vec<String> {
    let namespace = Some(key.namespace()).filter(|namespace| !namespace.is_empty());
    let namespaced = namespace.map(|namespace| K::url_path(kind, Some(namespace)));
    std::iter::once(K::url_path(kind, None))
        .chain(namespaced)
        .collect()
}

/// The object with its API version and kind, as requests carry it.
fn dynamic(object: &DesiredObject) -> Result<DynamicObject, Error> {
    serde_json::from_value(typed(&object.kind, &object.object)).map_err(|error| Error::Refused {
        key: object.key(),
        source: Box::new(kube::Error::SerdeError(error)),
    })
}

/// The object with its API version and kind, which an apply requires.
fn typed(kind: &ResourceKind, object: &Value) -> Value {
    let ApiResource {
        api_version, kind, ..
    } = &kind.resource;
    let mut object = object.clone();
    object["apiVersion"] = api_version.clone().into();
    object["kind"] = kind.clone().into();
    object
}

/// Whether the server refused because the object is not the one that was read.
fn is_conflict(status: &Status, key: &Key) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let uid_differs = causes
        .into_iter()
        .any(|cause| cause.field == "metadata.uid");
    status.is_conflict() || uid_differs || is_gone(status, key)
}

/// Whether the object was not found, rather than its namespace or its kind.
fn is_gone(status: &Status, key: &Key) -> bool {
    let of_namespace = |kind: &str| kind == "namespaces" && !key.namespace().is_empty();
    let details = status.details.as_ref();
    status.is_not_found()
        && details.is_some_and(|it| it.name == key.name() && !of_namespace(&it.kind))
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::NotLeading(following) => following.code(),
            Self::Conflict(_) => Code("NT-KIT-004"),
            Self::Refused { .. } => Code("NT-KIT-012"),
            Self::Timeout { .. } => Code("NT-KIT-013"),
        }
    }
}
