//! Update: one loop for PUT, every kind of PATCH and the status subresource.

use std::{collections::HashSet, sync::Arc};

use http::StatusCode;
use serde_json::Value;

use super::{
    Machine, Reply, Request, Served,
    admission::AdmissionWrite,
    create::{FieldOwnership, admitted_first, pretended},
    hidden_parts::HiddenParts,
    incoming::{Origin, shape},
    metadata, report,
};
use crate::{
    kinds::metadata::dedup_owners,
    patch::{
        apply::{is_typed, track_versions},
        managed::put_managed_fields,
    },
    status::{ApiError, Problems, Result},
    store::Object,
};

/// Attempts of a write without a resourceVersion that loses to concurrent writes.
pub(super) const MAX_ATTEMPTS: usize = 16;

/// The part of the object that an endpoint may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectPart {
    /// Everything but status.
    Main,
    /// Status alone.
    Status,
    /// One field through a subresource of its own (`scale`, `finalize`); managedFields record its
    /// name.
    Other(&'static str),
}

/// The part of a pod that a binding changes.
pub(crate) const BINDING: ObjectPart = ObjectPart::Other("binding");

impl ObjectPart {
    /// Whether an apply to this endpoint creates a missing object. Kinds that an update creates are
    /// also created through their status.
    pub(crate) fn makes(self, served: &Served) -> bool {
        match self {
            Self::Main => true,
            Self::Status => served.traits().create_on_update,
            Self::Other(_) => false,
        }
    }

    /// The subresource that managedFields record for this endpoint.
    pub(crate) fn subresource(self) -> Option<&'static str> {
        match self {
            Self::Main => None,
            Self::Status => Some("status"),
            Self::Other(name) => Some(name),
        }
    }
}

/// A new state, computed from the stored one.
pub(crate) struct Proposal {
    /// The new object, in the storage version.
    pub(crate) value: Value,
    /// Where its managed fields come from.
    pub(crate) ownership: FieldOwnership,
}

impl Machine {
    pub(super) async fn update(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        self.replace(request, served, ObjectPart::Main).await
    }

    /// PUT on the main resource or on status.
    pub(super) async fn replace(
        &self,
        request: &Request,
        served: &Arc<Served>,
        part: ObjectPart,
    ) -> Result<Reply> {
        let mut warnings = Vec::new();
        let payload = request.payload()?;
        let value = shape(request, served, payload, Origin::Body, &mut warnings)
            .map_err(|error| error.warned(&warnings))?;
        let absent = || {
            let head = self.head(served, &request.target.path());
            head.is_none_or(|head| head.object.is_none())
        };
        if served.traits().create_on_update && !metadata::text(&value, "uid").is_empty() && absent()
        {
            return Err(uid_differs(served, request, &value, "", 0).warned(&warnings));
        }
        let creates = part.makes(served) && served.traits().create_on_update;
        if creates
            && self
                .head(served, &request.target.path())
                .is_none_or(|head| head.object.is_none())
        {
            requested_revision(&value).map_err(|error| error.warned(&warnings))?;
            let object = self
                .insert(request, served, value, FieldOwnership::Whole, &mut warnings)
                .await
                .map_err(|error| error.warned(&warnings))?;
            let reply = self.reply(request, served, StatusCode::CREATED, &object)?;
            return Ok(reply.with_warnings(warnings));
        }
        let mut value = value;
        served.to_storage(&mut value);
        let change = |_: &Value| {
            Ok(Proposal {
                value: value.clone(),
                ownership: FieldOwnership::Whole,
            })
        };
        let object = self
            .modify(request, served, part, &mut warnings, change)
            .await
            .map_err(|error| error.warned(&warnings))?;
        let reply = self.reply(request, served, StatusCode::OK, &object)?;
        Ok(reply.with_warnings(warnings))
    }

    /// Reads, proposes, validates and writes until no concurrent write was first.
    pub(super) async fn modify(
        &self,
        request: &Request,
        served: &Arc<Served>,
        part: ObjectPart,
        warnings: &mut Vec<String>,
        mut propose: impl FnMut(&Value) -> Result<Proposal>,
    ) -> Result<Arc<Object>> {
        let place = request.target.path();
        let name = &request.target.name;
        for _ in 0..MAX_ATTEMPTS {
            let Some(head) = self.head(served, &place) else {
                return Err(served.not_found(name));
            };
            let Some(live) = head.object else {
                self.settled(head.revision).await?;
                return Err(served.not_found(name));
            };
            let outcome = self
                .attempt(request, served, part, &live, warnings, &mut propose)
                .await;
            // The response depends on the state that was read.
            self.settled(live.revision()).await?;
            if let Some(object) = outcome? {
                return Ok(object);
            }
        }
        Err(served.stale(name))
    }

    /// One attempt; `None` if a concurrent write was first and a retry may help.
    async fn attempt(
        &self,
        request: &Request,
        served: &Arc<Served>,
        part: ObjectPart,
        live: &Arc<Object>,
        warnings: &mut Vec<String>,
        propose: &mut impl FnMut(&Value) -> Result<Proposal>,
    ) -> Result<Option<Arc<Object>>> {
        let mut old = live.value();
        if served.is_custom() && served.is_storage() {
            // A default that was added after the object was stored is present when it is read, and
            // has no owner.
            served.default(&mut old);
        }
        let old = old;
        let Proposal {
            value: mut new,
            ownership,
        } = propose(&old)?;
        let name = &request.target.name;
        if part == BINDING {
            check_bound(served, request, &new, &old, live)?;
        } else {
            if request.verb == super::Verb::Update {
                check_uid(served, request, &new, &old, live)?;
            }
            check_revision(served, part, name, &new, live)?;
        }
        let sent = as_sent(served, &new, ownership);
        let untyped = ownership == FieldOwnership::Whole && is_untyped(served, &[&new, &old]);
        settle_fields(served, part, &mut new, &old);
        let told = dedup_owners(&mut new);
        *warnings = merge(warnings, told.into_iter().collect());
        if ownership == FieldOwnership::Whole {
            self.record_ownership(request, served, part, Some(&old), &mut new)?;
            if untyped {
                metadata::of(&mut new).remove("managedFields");
            }
        }
        served.forget_empty_lists(&mut new);
        track_others(served, part, &old, sent.as_ref(), &mut new);
        let change = AdmissionWrite {
            request,
            served,
            part,
            old: Some(&old),
        };
        if self.mutate(change, &mut new, warnings).await? {
            settle_fields(served, part, &mut new, &old);
        }
        self.check_grant(change, &new)?;
        if !admitted_first(change) {
            self.prepare_and_validate(change, &mut new, warnings)?;
        }
        self.conclude(change, live, new, ownership.hidden(), warnings)
            .await
    }

    /// Stores the validated object, unless nothing would change; `None` if a concurrent write was
    /// first.
    async fn conclude(
        &self,
        change: AdmissionWrite<'_>,
        live: &Arc<Object>,
        mut new: Value,
        hidden: HiddenParts,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Arc<Object>>> {
        let AdmissionWrite {
            request, served, ..
        } = change;
        if let Some(old) = change.old.filter(|_| hidden.counts) {
            metadata::count_hidden(&mut new, old);
        }
        let managed = (hidden.mark != 0).then(|| new["metadata"]["managedFields"].clone());
        let _held = self.settle(change, &mut new, warnings).await?;
        if let Some(entries) = managed {
            // A change of what is not shown is a change, and gets a time.
            put_managed_fields(&mut new, entries);
        }
        if request.dry_run()? {
            let object = Object::pretended(&new, live.revision());
            return pretended(object).map(Some);
        }
        // An object that this write removes is returned as it was sent.
        if !super::own::ends(served, &new) {
            metadata::of(&mut new).remove("selfLink");
        }
        if change.old == Some(&new) && hidden.mark == live.hidden() {
            return Ok(Some(live.clone()));
        }
        let stored = self.put(served, &request.target.path(), live, &new).await?;
        if let Some(object) = &stored {
            object.set_hidden(hidden.mark);
        }
        Ok(stored)
    }
}

/// The object as a plain write sent it, if there are managers of several versions.
fn as_sent(served: &Served, new: &Value, ownership: FieldOwnership) -> Option<Value> {
    let asked = served.has_versions() && ownership == FieldOwnership::Whole;
    let mut sent = asked.then(|| new.clone())?;
    served.default(&mut sent);
    Some(sent)
}

fn track_others(
    served: &Served,
    part: ObjectPart,
    old: &Value,
    sent: Option<&Value>,
    new: &mut Value,
) {
    if let Some(sent) = sent {
        let stamp = (served.api_version.as_str(), part.subresource());
        track_versions(served.storage_schema(), old, sent, new, stamp);
    }
}

/// Whether one of these is a custom object whose fields do not have their declared types. Its
/// managed fields are then dropped, as in kube-apiserver.
pub(super) fn is_untyped(served: &Served, objects: &[&Value]) -> bool {
    let is_typed = |object: &&Value| is_typed(served.schema(), object);
    served.is_custom() && !objects.iter().all(is_typed)
}

pub(super) fn check_change(
    served: &Served,
    part: ObjectPart,
    name: &str,
    new: &Value,
    old: &Value,
) -> Result<()> {
    if part == BINDING {
        // Everything else is fixed, and the binding was validated already.
        return Ok(());
    }
    let mut problems = Problems::new();
    if part == ObjectPart::Status {
        served.validate_status(new, old, &mut problems);
    } else {
        served.validate(new, Some(old), &mut problems);
        served.check_alias_change(new, old, &mut problems);
    }
    served.refuse_object(new, name, &problems)
}

/// Keeps what this endpoint may not change and fills defaults.
fn settle_fields(served: &Served, part: ObjectPart, new: &mut Value, old: &Value) {
    metadata::carry_over(new, old);
    match part {
        ObjectPart::Main | ObjectPart::Other("finalize") if served.has_status() => {
            keep(new, old, "status");
        }
        ObjectPart::Status if served.is_custom() => keep_for_status(served, new, old),
        ObjectPart::Status => {
            // Defaults of the status depend on the rest of the sent object.
            served.default(new);
            keep_for_status(served, new, old);
            return;
        }
        ObjectPart::Main | ObjectPart::Other(_) => {}
    }
    served.default(new);
}

/// Copies the fields that the kind keeps, and updates the generation. These changes have no owner.
pub(super) fn prepare(served: &Served, part: ObjectPart, new: &mut Value, old: &Value) {
    metadata::keep_deleting(new, old);
    if part == ObjectPart::Main {
        (served.rules().prepare_update)(new, old);
    }
    if part == ObjectPart::Status
        && let Some(status) = new.get_mut("status")
    {
        report::keep_left_out(status, &old["status"], served.traits().status_stays);
    }
    let counts = served.traits().generation && part != ObjectPart::Status && part != BINDING;
    let annotated = served.traits().annotations_count && metadata::annotations_differ(new, old);
    if counts && (annotated || metadata::wanted_state_differs(new, old, served.has_status())) {
        metadata::bump_generation(new);
    }
}

/// Refuses a replacement with another uid.
fn check_uid(
    served: &Served,
    request: &Request,
    new: &Value,
    old: &Value,
    live: &Object,
) -> Result<()> {
    let uid = metadata::text(new, "uid");
    let stored = metadata::text(old, "uid");
    if uid.is_empty() || uid == stored {
        return Ok(());
    }
    Err(uid_differs(served, request, new, stored, live.revision()))
}

fn uid_differs(
    served: &Served,
    request: &Request,
    new: &Value,
    stored: &str,
    revision: u64,
) -> ApiError {
    let uid = metadata::text(new, "uid");
    let why = format!("UID in precondition: {uid}, UID in object meta: {stored}");
    precondition_failed(served, request, revision, &why)
}

fn precondition_failed(served: &Served, request: &Request, revision: u64, why: &str) -> ApiError {
    let place = request.target.path();
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {}/{place}, ResourceVersion: {revision}, AdditionalErrorMsg: \
         Precondition failed: {why}",
        storage_key(request, served),
    );
    let (resource, name) = (&served.resource, &request.target.name);
    ApiError::conflict(&resource.group, &resource.plural, name, &why)
}

/// The storage key in errors; that of a dry run has no prefix.
fn storage_key(request: &Request, served: &Served) -> String {
    let key = served.storage_key();
    match key.strip_prefix("/registry") {
        Some(rest) if request.dry_run().unwrap_or_default() => rest.to_owned(),
        _ => key,
    }
}

/// Refuses a binding of another pod, or of another state of it, than the binding names.
fn check_bound(
    served: &Served,
    request: &Request,
    new: &Value,
    old: &Value,
    live: &Object,
) -> Result<()> {
    let stored = metadata::text(old, "uid");
    if metadata::text(new, "uid") != stored {
        return Err(uid_differs(served, request, new, stored, 0));
    }
    let (meant, revision) = (metadata::text(new, "resourceVersion"), live.revision());
    if matches!(meant, "" | "0") || meant == revision.to_string() {
        return Ok(());
    }
    let why = format!(
        "ResourceVersion in precondition: {meant}, ResourceVersion in object meta: {revision}"
    );
    Err(precondition_failed(served, request, 0, &why))
}

/// Refuses a change based on an older state. A write with a resourceVersion that lost to a
/// concurrent write fails here on its next attempt.
fn check_revision(
    served: &Served,
    part: ObjectPart,
    name: &str,
    new: &Value,
    live: &Object,
) -> Result<()> {
    match requested_revision(new)? {
        0 if !matches!(part, ObjectPart::Other(_)) && !served.traits().unconditional_update => {
            Err(served.unversioned(name))
        }
        0 => Ok(()),
        revision if revision == live.revision() => Ok(()),
        _ => Err(served.stale(name)),
    }
}

/// The resourceVersion of a write, zero if none.
pub(super) fn requested_revision(value: &Value) -> Result<u64> {
    match metadata::text(value, "resourceVersion") {
        "" => Ok(0),
        text => text
            .parse()
            .map_err(|_| ApiError::failure(super::request::not_a_number("ParseUint", text))),
    }
}

pub(super) fn keep(new: &mut Value, old: &Value, field: &str) {
    let Some(fields) = new.as_object_mut() else {
        return;
    };
    match old.get(field) {
        Some(value) => fields.insert(field.into(), value.clone()),
        None => fields.remove(field),
    };
}

/// Restores what the status endpoint may not change: for custom objects everything but the status;
/// for built-in ones metadata may change too, except for what the kind keeps.
fn keep_for_status(served: &Served, new: &mut Value, old: &Value) {
    let mut kept = old.clone();
    let changed = ["status", "metadata"].map(|field| new.get_mut(field).map(Value::take));
    *new = Value::Null;
    let [status, metadata] = changed;
    if let Some(fields) = kept.as_object_mut() {
        // A built-in kind has a status even when it is empty.
        let none = (!served.is_custom()).then(|| Value::Object(serde_json::Map::new()));
        match status.or(none) {
            Some(status) => fields.insert("status".into(), status),
            None => fields.remove("status"),
        };
    }
    if let Some(mut metadata) = metadata {
        if served.is_custom() {
            if let Some(entries) = metadata.get_mut("managedFields") {
                kept["metadata"]["managedFields"] = entries.take();
            }
        } else {
            for field in served.traits().status_keeps {
                keep(&mut metadata, &old["metadata"], field);
            }
            kept["metadata"] = metadata;
        }
    }
    *new = kept;
}

pub(super) fn merge(warnings: &[String], more: Vec<String>) -> Vec<String> {
    let mut seen: HashSet<String> = warnings.iter().cloned().collect();
    let new = more.into_iter().filter(|text| seen.insert(text.clone()));
    warnings
        .iter()
        .cloned()
        .chain(new.collect::<Vec<_>>())
        .collect()
}
