//! The one hand that writes.

use std::{sync::Arc, time::Duration};

use kube::{
    Api, Client, Resource,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions},
    core::Status,
};
use serde_json::{Value, json};

use super::{
    Change, Kind, Plan, Write,
    write::{Witness, word},
};
use crate::{
    clock::Clock,
    echo::{removed, wrote},
    key::Key,
    lease::{Leadership, NotLeading},
    planted,
    telemetry::{Telemetry, Wrote},
    why::{Code, Coded},
};

/// Why something was not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process leads.
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    /// The object is another than the one that was looked at, or is no longer there. Looking again
    /// mends it.
    #[error("{0} is no longer the object that was looked at")]
    Replaced(Key),
    /// The server refused.
    #[error("{key} could not be written")]
    Refused {
        /// Which object.
        key: Key,
        /// What the server said.
        #[source]
        source: Box<kube::Error>,
    },
    /// The server did not answer in time; the write may have happened.
    #[error("no answer to a write of {key} within {waited:?}")]
    Late {
        /// Which object.
        key: Key,
        /// For how long.
        waited: Duration,
    },
}

/// Makes the writes of a controller: as one field manager, only while it leads, and each to the
/// very object that was decided upon.
#[derive(Debug, Clone)]
pub struct Hand {
    client: Debuggable,
    manager: String,
    leadership: Leadership,
    clock: Clock,
    limit: Duration,
    telemetry: Telemetry,
    witness: Option<Arc<dyn Witness>>,
}

/// [`Client`] says nothing about itself.
#[derive(Clone)]
struct Debuggable(Client);

impl std::fmt::Debug for Debuggable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Hand {
    /// A hand that writes as `manager` while `leadership` lasts.
    pub fn new(
        client: Client,
        manager: impl Into<String>,
        leadership: Leadership,
        clock: Clock,
    ) -> Self {
        Self {
            client: Debuggable(client),
            manager: manager.into(),
            leadership,
            clock,
            limit: Duration::from_secs(10),
            telemetry: Telemetry::default(),
            witness: None,
        }
    }

    /// The same hand, whose writes are counted by `telemetry`.
    pub fn counted_by(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// The same hand, whose writes `witness` is told of.
    pub fn witnessed_by(mut self, witness: Arc<dyn Witness>) -> Self {
        self.witness = Some(witness);
        self
    }

    /// Carries `plan` out in its order, up to the first write that fails.
    pub async fn carry_out(&self, plan: Plan) -> Result<Vec<DynamicObject>, Error> {
        let mut written = Vec::new();
        for change in plan.changes {
            written.extend(self.change(change).await?);
        }
        Ok(written)
    }

    async fn change(&self, change: Change) -> Result<Option<DynamicObject>, Error> {
        tracing::info!(%change, manager = self.manager, "write");
        match change {
            Change::Create(goal) => {
                let key = goal.key();
                self.free(&goal.kind, &key).await?;
                let parameters = PatchParams::apply(&self.manager);
                let made = self.apply(&goal.kind, &key, &goal.object, &parameters);
                made.await.map(Some)
            }
            Change::Update { mut goal, uid, .. } => {
                let key = goal.key();
                // With its uid an apply is refused if the object was replaced, and never makes one.
                goal.object["metadata"]["uid"] = uid.into();
                let parameters = PatchParams::apply(&self.manager).force();
                let changed = self.apply(&goal.kind, &key, &goal.object, &parameters);
                changed.await.map(Some)
            }
            Change::Delete { kind, key, uid } => self.delete(&kind, &key, uid).await.map(|()| None),
        }
    }

    /// Asks the server itself whether the name is free. An apply takes over what it finds, and a cache
    /// may not show yet that another has that name. Whoever takes the name between this answer and the
    /// apply is not seen: no apply can be told to make an object and do nothing else. It is then merged
    /// into theirs, without force: refused where both name a field, and where they do not, both write
    /// that object from then on.
    async fn free(&self, kind: &Kind, key: &Key) -> Result<(), Error> {
        planted!(NameUnasked => return Ok(()));
        let api = self.api(kind, key);
        let found = api.get_metadata_opt(key.name());
        match self.answered(key, found).await? {
            Some(_) => Err(Error::Replaced(key.clone())),
            None => Ok(()),
        }
    }

    async fn apply(
        &self,
        kind: &Kind,
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
        noted(kind, key, &written);
        Ok(written)
    }

    /// Writes `status`, if it differs from the one that `live` has. One write, and none if nothing
    /// changed; the whole status is ours.
    pub async fn status(
        &self,
        kind: &Kind,
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
        noted(kind, &key, &written);
        Ok(Some(written))
    }

    async fn delete(&self, kind: &Kind, key: &Key, uid: String) -> Result<(), Error> {
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
            removed(&addresses::<DynamicObject>(&kind.resource, key), key, &uid);
            Ok(())
        };
        self.take_away(write, call).await
    }

    /// Makes a write that deletes. It is no error if the object is gone; one that is another, or
    /// that the server could not delete because it was being changed, wants another look.
    pub(super) async fn take_away(
        &self,
        write: Write,
        call: impl Future<Output = Result<(), kube::Error>>,
    ) -> Result<(), Error> {
        let mut gone = false;
        let call = async {
            let done = call.await;
            gone = matches!(&done, Err(kube::Error::Api(status)) if status.is_not_found());
            gone |= planted!(ConflictIsGone) && done.is_err();
            done
        };
        match self.perform(write, call).await {
            Err(Error::Replaced(_)) if gone => Ok(()),
            outcome => outcome,
        }
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
        kind: &Kind,
        key: &Key,
        part: Option<&str>,
    ) -> Write {
        let ApiResource {
            api_version, kind, ..
        } = &kind.resource;
        Write {
            manager: self.manager.clone(),
            verb,
            kind: format!("{api_version} {kind}"),
            key: key.clone(),
            part: part.map(str::to_owned),
        }
    }

    /// Makes the write, if this process leads, and tells of it.
    pub(super) fn perform<T>(
        &self,
        write: Write,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> impl Future<Output = Result<T, Error>> {
        // A request is large, and whoever waits for it would hold it several times over.
        let call = Box::pin(call);
        async move {
            // Asked last before a request is sent, so that a process which was stopped does not
            // begin it.
            let outcome = match self.leadership.check() {
                Ok(_) => {
                    let limit = self.limit.min(self.leadership.left());
                    self.answered_within(limit, &write.key, call).await
                }
                Err(error) => Err(error.into()),
            };
            self.tell(&write, outcome.as_ref().map(|_| ())).await;
            outcome
        }
    }

    async fn tell(&self, write: &Write, outcome: Result<(), &Error>) {
        self.telemetry.emit(&Wrote {
            manager: &write.manager,
            verb: write.verb,
            kind: &write.kind,
            key: &write.key,
            result: word(outcome),
        });
        if let Some(witness) = &self.witness
            && !matches!(outcome, Err(Error::NotLeading(_)))
        {
            witness.saw(write, outcome).await;
        }
    }

    /// What the server says to `call`, be it a write or a question before one.
    pub(super) async fn answered<T>(
        &self,
        key: &Key,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Error> {
        self.answered_within(self.limit, key, call).await
    }

    async fn answered_within<T>(
        &self,
        limit: Duration,
        key: &Key,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Error> {
        match self.clock.within(limit, call).await {
            Some(Ok(done)) => Ok(done),
            Some(Err(kube::Error::Api(status))) if is_of_another(&status, key) => {
                Err(Error::Replaced(key.clone()))
            }
            Some(Err(source)) => Err(Error::Refused {
                key: key.clone(),
                source: Box::new(source),
            }),
            None => Err(Error::Late {
                key: key.clone(),
                waited: limit,
            }),
        }
    }

    pub(super) fn api(&self, kind: &Kind, key: &Key) -> Api<DynamicObject> {
        let client = self.client.0.clone();
        if kind.namespaced {
            Api::namespaced_with(client, key.namespace(), &kind.resource)
        } else {
            Api::all_with(client, &kind.resource)
        }
    }
}

/// The watches are to show it before whoever wrote it looks again.
pub(super) fn noted(kind: &Kind, key: &Key, written: &DynamicObject) {
    let version = written.metadata.resource_version.as_deref();
    wrote(&addresses::<DynamicObject>(&kind.resource, key), version);
}

/// Where watches may show an object: among all of its kind, or those of its namespace.
pub(super) fn addresses<K: Resource>(kind: &K::DynamicType, key: &Key) -> Vec<String> {
    let namespace = Some(key.namespace()).filter(|namespace| !namespace.is_empty());
    let within = namespace.map(|namespace| K::url_path(kind, Some(namespace)));
    std::iter::once(K::url_path(kind, None))
        .chain(within)
        .collect()
}

/// The object with its kind, which an apply must name.
fn typed(kind: &Kind, object: &Value) -> Value {
    let ApiResource {
        api_version, kind, ..
    } = &kind.resource;
    let mut object = object.clone();
    object["apiVersion"] = api_version.clone().into();
    object["kind"] = kind.clone().into();
    object
}

/// Whether a refusal says that the object is not the one that was looked at.
fn is_of_another(status: &Status, key: &Key) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let names_another = causes
        .into_iter()
        .any(|cause| cause.field == "metadata.uid");
    status.is_conflict() || names_another || is_gone(status, key)
}

/// Whether it is the object that was not found, and not its namespace or its kind.
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
            Self::Replaced(_) => Code("NT-KIT-004"),
            Self::Refused { .. } => Code("NT-KIT-012"),
            Self::Late { .. } => Code("NT-KIT-013"),
        }
    }
}
