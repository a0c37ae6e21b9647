//! Update: one loop for PUT, every kind of PATCH and the status subresource.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::{
    Machine, Reply, Request, Served,
    admission::Change,
    create::{Booking, admitted_first, pretended},
    incoming::{Origin, shape},
    metadata, report,
    unseen::Unseen,
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

/// How often a write that named no revision is tried again when somebody was faster.
pub(super) const ATTEMPTS: usize = 16;

/// Which part of the object an endpoint may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but status.
    Main,
    /// Status alone.
    Status,
    /// One field through a subresource of its own (`scale`, `finalize`); the name is booked.
    Other(&'static str),
}

/// The part of a pod that a binding changes.
pub(crate) const BINDING: Part = Part::Other("binding");

impl Part {
    /// Whether an apply to this endpoint makes an object that is not there. Kinds that are made by
    /// an update are made by one of their status, too.
    pub(crate) fn makes(self, served: &Served) -> bool {
        match self {
            Self::Main => true,
            Self::Status => served.traits().create_on_update,
            Self::Other(_) => false,
        }
    }

    /// The name under which managed fields of this endpoint are booked.
    pub(crate) fn subresource(self) -> Option<&'static str> {
        match self {
            Self::Main => None,
            Self::Status => Some("status"),
            Self::Other(name) => Some(name),
        }
    }
}

/// A new state made from the stored one.
pub(crate) struct Proposal {
    /// The new object, in the storage version.
    pub(crate) value: Value,
    /// Who booked its managed fields.
    pub(crate) booking: Booking,
}

impl Machine {
    pub(super) async fn update(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        self.replace(request, served, Part::Main).await
    }

    /// PUT on the main resource or on status.
    pub(super) async fn replace(
        &self,
        request: &Request,
        served: &Arc<Served>,
        part: Part,
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
            asked_revision(&value).map_err(|error| error.warned(&warnings))?;
            let object = self
                .insert(request, served, value, Booking::Whole, &mut warnings)
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
                booking: Booking::Whole,
            })
        };
        let object = self
            .modify(request, served, part, &mut warnings, change)
            .await
            .map_err(|error| error.warned(&warnings))?;
        let reply = self.reply(request, served, StatusCode::OK, &object)?;
        Ok(reply.with_warnings(warnings))
    }

    /// Reads, proposes, checks and writes until nobody was faster.
    pub(super) async fn modify(
        &self,
        request: &Request,
        served: &Arc<Served>,
        part: Part,
        warnings: &mut Vec<String>,
        mut propose: impl FnMut(&Value) -> Result<Proposal>,
    ) -> Result<Arc<Object>> {
        let place = request.target.path();
        let name = &request.target.name;
        for _ in 0..ATTEMPTS {
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
            // Whatever is answered rests on the state that was read.
            self.settled(live.revision()).await?;
            if let Some(object) = outcome? {
                return Ok(object);
            }
        }
        Err(served.stale(name))
    }

    /// One try; `None` if somebody was faster and trying again may help.
    async fn attempt(
        &self,
        request: &Request,
        served: &Arc<Served>,
        part: Part,
        live: &Arc<Object>,
        warnings: &mut Vec<String>,
        propose: &mut impl FnMut(&Value) -> Result<Proposal>,
    ) -> Result<Option<Arc<Object>>> {
        let mut old = live.value();
        if served.is_custom() && served.is_storage() {
            // A default that came after the object is there when it is read, and nobody's.
            served.default(&mut old);
        }
        let old = old;
        let Proposal {
            value: mut new,
            booking,
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
        let sent = as_sent(served, &new, booking);
        let untyped = booking == Booking::Whole && is_untyped(served, &[&new, &old]);
        settle_fields(served, part, &mut new, &old);
        let told = dedup_owners(&mut new);
        *warnings = merge(warnings, told.into_iter().collect());
        if booking == Booking::Whole {
            self.book(request, served, part, Some(&old), &mut new)?;
            if untyped {
                metadata::of(&mut new).remove("managedFields");
            }
        }
        served.forget_empty_lists(&mut new);
        track_others(served, part, &old, sent.as_ref(), &mut new);
        let change = Change {
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
            self.judge(change, &mut new, warnings)?;
        }
        self.conclude(change, live, new, booking.unseen(), warnings)
            .await
    }

    /// Stores what was judged, unless nothing would change; `None` if somebody was faster.
    async fn conclude(
        &self,
        change: Change<'_>,
        live: &Arc<Object>,
        mut new: Value,
        unseen: Unseen,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Arc<Object>>> {
        let Change {
            request, served, ..
        } = change;
        if let Some(old) = change.old.filter(|_| unseen.counts) {
            metadata::count_unseen(&mut new, old);
        }
        let booked = (unseen.mark != 0).then(|| new["metadata"]["managedFields"].clone());
        let _held = self.settle(change, &mut new, warnings).await?;
        if let Some(entries) = booked {
            // What is not shown is a change, and it has a time.
            put_managed_fields(&mut new, entries);
        }
        if request.dry_run()? {
            let object = Object::pretended(&new, live.revision());
            return pretended(object).map(Some);
        }
        // What goes with this is answered as it was asked for.
        if !super::own::ends(served, &new) {
            metadata::of(&mut new).remove("selfLink");
        }
        if change.old == Some(&new) && unseen.mark == live.unseen() {
            return Ok(Some(live.clone()));
        }
        let stored = self.put(served, &request.target.path(), live, &new).await?;
        if let Some(object) = &stored {
            object.hold_unseen(unseen.mark);
        }
        Ok(stored)
    }
}

/// The object as a plain write sent it, where there are managers of several versions.
fn as_sent(served: &Served, new: &Value, booking: Booking) -> Option<Value> {
    let asked = served.has_versions() && booking == Booking::Whole;
    let mut sent = asked.then(|| new.clone())?;
    served.default(&mut sent);
    Some(sent)
}

fn track_others(served: &Served, part: Part, old: &Value, sent: Option<&Value>, new: &mut Value) {
    if let Some(sent) = sent {
        let stamp = (served.api_version.as_str(), part.subresource());
        track_versions(served.storage_schema(), old, sent, new, stamp);
    }
}

/// Whether one of these is a custom object whose fields are not of their types. Who owns what is
/// then forgotten, as on the reference.
pub(super) fn is_untyped(served: &Served, objects: &[&Value]) -> bool {
    let is_typed = |object: &&Value| is_typed(served.schema(), object);
    served.is_custom() && !objects.iter().all(is_typed)
}

pub(super) fn check_change(
    served: &Served,
    part: Part,
    name: &str,
    new: &Value,
    old: &Value,
) -> Result<()> {
    if part == BINDING {
        // Everything else is fixed, and what may be bound was decided already.
        return Ok(());
    }
    let mut problems = Problems::new();
    if part == Part::Status {
        served.validate_status(new, old, &mut problems);
    } else {
        served.validate(new, Some(old), &mut problems);
        served.check_alias_change(new, old, &mut problems);
    }
    served.refuse_object(new, name, &problems)
}

/// Keeps what this endpoint may not change and fills defaults.
fn settle_fields(served: &Served, part: Part, new: &mut Value, old: &Value) {
    metadata::carry_over(new, old);
    match part {
        Part::Main | Part::Other("finalize") if served.has_status() => keep(new, old, "status"),
        Part::Status if served.is_custom() => keep_for_status(served, new, old),
        Part::Status => {
            // What is filled into status follows what was sent beside it.
            served.default(new);
            keep_for_status(served, new, old);
            return;
        }
        Part::Main | Part::Other(_) => {}
    }
    served.default(new);
}

/// Carries over what the kind keeps, and counts the generation. What this does nobody owns.
pub(super) fn prepare(served: &Served, part: Part, new: &mut Value, old: &Value) {
    metadata::keep_deleting(new, old);
    if part == Part::Main {
        (served.rules().prepare_update)(new, old);
    }
    if part == Part::Status
        && let Some(status) = new.get_mut("status")
    {
        report::keep_left_out(status, &old["status"], served.traits().status_stays);
    }
    let counts = served.traits().generation && part != Part::Status && part != BINDING;
    let annotated = served.traits().annotations_count && metadata::annotations_differ(new, old);
    if counts && (annotated || metadata::wanted_state_differs(new, old, served.has_status())) {
        metadata::bump_generation(new);
    }
}

/// Refuses a replacement that means another object.
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

/// What is only tried is not tried below the prefix of what is stored.
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

/// Refuses a change of an older state. A write that was overtaken and names a state meets this
/// again on its next try.
fn check_revision(
    served: &Served,
    part: Part,
    name: &str,
    new: &Value,
    live: &Object,
) -> Result<()> {
    match asked_revision(new)? {
        0 if !matches!(part, Part::Other(_)) && !served.traits().unconditional_update => {
            Err(served.unversioned(name))
        }
        0 => Ok(()),
        revision if revision == live.revision() => Ok(()),
        _ => Err(served.stale(name)),
    }
}

/// The revision that a write names, zero if none.
pub(super) fn asked_revision(value: &Value) -> Result<u64> {
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

/// Status alone of custom objects may change here; of built-in ones metadata too, but for what
/// the kind keeps.
fn keep_for_status(served: &Served, new: &mut Value, old: &Value) {
    let mut kept = old.clone();
    let changed = ["status", "metadata"].map(|field| new.get_mut(field).map(Value::take));
    *new = Value::Null;
    let [status, metadata] = changed;
    if let Some(fields) = kept.as_object_mut() {
        // A built-in kind has a status even when nothing is in it.
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
    let mut all = warnings.to_vec();
    for text in more {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}
