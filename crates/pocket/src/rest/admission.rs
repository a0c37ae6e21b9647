//! Admission: changes or refuses a write after its form was validated.
//!
//! A write goes through it twice, as in kube-apiserver: [`Machine::mutate`] runs after the fields
//! of the request were recorded in managedFields, so that what admission adds has no owner, and
//! before validation; [`Machine::confirm`] runs last before the store and changes nothing. The
//! server's own writes go through the built-in plugins and no webhook.

mod call;
mod plugins;
mod quota;
mod reviewed_write;
mod service_account;
mod settle;
mod webhooks;

use serde_json::Value;

use super::{Machine, Request, Served, incoming::check_place, metadata, update::ObjectPart};
use crate::{
    admission::{Operation, Phase},
    status::Result,
};

pub(crate) use quota::QUOTAS;
pub(crate) use reviewed_write::ReviewedWrite;

/// A write, as admission sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmissionWrite<'a> {
    /// The request with its user and options.
    pub(crate) request: &'a Request,
    pub(crate) served: &'a Served,
    /// The part of the object that the endpoint may change.
    pub(crate) part: ObjectPart,
    /// The stored object; none on create.
    pub(crate) old: Option<&'a Value>,
}

impl Machine {
    /// Lets admission change or refuse the object. True if a webhook changed it.
    pub(super) async fn mutate(
        &self,
        change: AdmissionWrite<'_>,
        new: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<bool> {
        self.plug(change, new).await?;
        if !self.calls_webhooks(change, Phase::Mutating) {
            return Ok(false);
        }
        let identity = Identity::lift(change, new);
        let changed = self
            .call_mutating(&ReviewedWrite::of(change), new, change.old, warnings)
            .await?;
        identity.put_back(new);
        if changed && change.old.is_none() {
            check_place(change.request, change.served, new)?;
            // A webhook may have added what a plugin completes.
            self.plug(change, new).await?;
        }
        Ok(changed)
    }

    /// Lets admission refuse the final object.
    pub(super) async fn confirm(
        &self,
        change: AdmissionWrite<'_>,
        new: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        self.check_limits(change, new).await?;
        if self.calls_webhooks(change, Phase::Validating) {
            self.call_validating(&ReviewedWrite::of(change), Some(new), change.old, warnings)
                .await?;
        }
        Ok(())
    }

    /// Lets admission refuse a delete. Webhooks of both phases are called, and neither may change
    /// anything.
    pub(super) async fn confirm_delete(
        &self,
        request: &Request,
        served: &Served,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        if !self.has_webhooks(request, served) {
            return Ok(());
        }
        let matter = ReviewedWrite::delete(request, served);
        self.call_mutating(&matter, &mut Value::Null, Some(old), warnings)
            .await?;
        self.call_validating(&matter, None, Some(old), warnings)
            .await
    }

    /// Admission of an object that is not stored: a binding, an eviction, the options of a
    /// connection.
    pub(crate) async fn admit_action(
        &self,
        matter: &ReviewedWrite<'_>,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        self.change_action(matter, object, warnings).await?;
        self.agree_to_action(matter, object, warnings).await
    }

    /// The mutating half of [`Self::admit_action`], for objects that are validated after it.
    pub(crate) async fn change_action(
        &self,
        matter: &ReviewedWrite<'_>,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        if !self.has_webhooks(matter.request, matter.served) {
            return Ok(());
        }
        self.call_mutating(matter, object, None, warnings).await?;
        Ok(())
    }

    /// The validating half of [`Self::admit_action`].
    pub(crate) async fn agree_to_action(
        &self,
        matter: &ReviewedWrite<'_>,
        object: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        if !self.has_webhooks(matter.request, matter.served) {
            return Ok(());
        }
        self.call_validating(matter, Some(object), None, warnings)
            .await
    }

    /// Whether webhooks may be called for this write in this phase. Bindings went through admission
    /// already, in their own form.
    fn calls_webhooks(&self, change: AdmissionWrite<'_>, phase: Phase) -> bool {
        self.hooks.any(phase)
            && change.part != super::update::BINDING
            && self.has_webhooks(change.request, change.served)
    }

    fn has_webhooks(&self, request: &Request, served: &Served) -> bool {
        (self.hooks.any(Phase::Mutating) || self.hooks.any(Phase::Validating))
            && !is_own(request)
            && !is_exempt(served)
    }
}

/// Whether this is the server's own write.
fn is_own(request: &Request) -> bool {
    request.user.is_server()
}

/// Webhook configurations are exempt: a webhook that refuses its own configuration could not be
/// repaired.
fn is_exempt(served: &Served) -> bool {
    Phase::ALL
        .iter()
        .any(|phase| *served.resource.bucket == *phase.bucket())
}

impl AdmissionWrite<'_> {
    fn operation(&self) -> Operation {
        match self.old {
            None => Operation::Create,
            Some(_) => Operation::Update,
        }
    }
}

/// The fields that the server gave a new object before admission. Mutating webhooks do not see
/// them, and cannot change them; but they may set the name of an object that only had a
/// generateName.
struct Identity(Option<Vec<(&'static str, Value, bool)>>);

impl Identity {
    fn lift(change: AdmissionWrite<'_>, new: &mut Value) -> Self {
        if change.old.is_some() {
            return Self(None);
        }
        let sent = change.request.body.as_ref();
        let named = sent.is_none_or(|body| !metadata::text(&body.value, "name").is_empty());
        let base = !metadata::text(new, "generateName").is_empty();
        let fields = metadata::of(new);
        let mut lifted = Vec::new();
        for field in ["uid", "creationTimestamp", "generation"] {
            if let Some(value) = fields.remove(field) {
                lifted.push((field, value, true));
            }
        }
        if base
            && !named
            && let Some(name) = fields.remove("name")
        {
            lifted.push(("name", name, false));
        }
        Self(Some(lifted))
    }

    fn put_back(self, new: &mut Value) {
        let Some(lifted) = self.0 else {
            return;
        };
        let fields = metadata::of(new);
        fields.remove("resourceVersion");
        for (field, value, always) in lifted {
            if always || !fields.contains_key(field) {
                fields.insert(field.into(), value);
            }
        }
    }
}
