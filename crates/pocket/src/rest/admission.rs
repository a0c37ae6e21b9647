//! Admission: what may still change or refuse a write after its form was found right.
//!
//! A write meets it twice, as in the real server: [`Machine::mutate`] runs after the request's own
//! fields were booked, so that what admission adds is nobody's, and before validation;
//! [`Machine::confirm`] runs last before the store and changes nothing. What the server writes in
//! its own name meets the built-in plugins and no webhook.

mod call;
mod matter;
mod plugins;
mod quota;
mod service_account;
mod settle;
mod webhooks;

use serde_json::Value;

use super::{Machine, Request, Served, incoming::check_place, metadata, update::Part};
use crate::{
    admission::{Operation, Phase},
    status::Result,
};

pub(crate) use matter::Matter;
pub(crate) use quota::QUOTAS;

/// What a write is about to do, as admission sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'a> {
    /// Who asks, for what, with which options.
    pub(crate) request: &'a Request,
    /// The resource.
    pub(crate) served: &'a Served,
    /// Which part of the object the endpoint may change.
    pub(crate) part: Part,
    /// The stored state; none for a new object.
    pub(crate) old: Option<&'a Value>,
}

impl Machine {
    /// Lets admission change the object or refuse it. True if a webhook changed it.
    pub(super) async fn mutate(
        &self,
        change: Change<'_>,
        new: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<bool> {
        self.plug(change, new).await?;
        if !self.asks(change, Phase::Mutating) {
            return Ok(false);
        }
        let identity = Identity::lift(change, new);
        let changed = self
            .ask_to_change(&Matter::of(change), new, change.old, warnings)
            .await?;
        identity.put_back(new);
        if changed && change.old.is_none() {
            check_place(change.request, change.served, new)?;
            // What a webhook brought may be just what a plugin completes.
            self.plug(change, new).await?;
        }
        Ok(changed)
    }

    /// Lets admission refuse the object in its last form.
    pub(super) async fn confirm(
        &self,
        change: Change<'_>,
        new: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        self.check_limits(change, new).await?;
        if self.asks(change, Phase::Validating) {
            self.ask_to_agree(&Matter::of(change), Some(new), change.old, warnings)
                .await?;
        }
        Ok(())
    }

    /// Lets admission refuse a delete. Both phases are asked, and neither may change anything.
    pub(super) async fn confirm_delete(
        &self,
        request: &Request,
        served: &Served,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        if !self.is_asked_about(request, served) {
            return Ok(());
        }
        let matter = Matter::delete(request, served);
        self.ask_to_change(&matter, &mut Value::Null, Some(old), warnings)
            .await?;
        self.ask_to_agree(&matter, None, Some(old), warnings).await
    }

    /// Lets admission see something that is no stored object: a binding, an eviction, the options
    /// of a connection.
    pub(crate) async fn admit_action(
        &self,
        matter: &Matter<'_>,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        self.change_action(matter, object, warnings).await?;
        self.agree_to_action(matter, object, warnings).await
    }

    /// The first half of [`Self::admit_action`], for what is judged after it may have been changed.
    pub(crate) async fn change_action(
        &self,
        matter: &Matter<'_>,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        if !self.is_asked_about(matter.request, matter.served) {
            return Ok(());
        }
        self.ask_to_change(matter, object, None, warnings).await?;
        Ok(())
    }

    /// The second half of [`Self::admit_action`].
    pub(crate) async fn agree_to_action(
        &self,
        matter: &Matter<'_>,
        object: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        if !self.is_asked_about(matter.request, matter.served) {
            return Ok(());
        }
        self.ask_to_agree(matter, Some(object), None, warnings)
            .await
    }

    /// Whether a webhook may want to see this write in this phase. Bindings were shown already, in
    /// a form of their own.
    fn asks(&self, change: Change<'_>, phase: Phase) -> bool {
        self.hooks.any(phase)
            && change.part != super::update::BINDING
            && self.is_asked_about(change.request, change.served)
    }

    fn is_asked_about(&self, request: &Request, served: &Served) -> bool {
        (self.hooks.any(Phase::Mutating) || self.hooks.any(Phase::Validating))
            && !is_own(request)
            && !is_exempt(served)
    }
}

/// Whether the server writes in its own name.
fn is_own(request: &Request) -> bool {
    request.user.is_server()
}

/// Nobody could mend a webhook that refuses its own configuration.
fn is_exempt(served: &Served) -> bool {
    Phase::ALL
        .iter()
        .any(|phase| *served.resource.bucket == *phase.bucket())
}

impl Change<'_> {
    fn operation(&self) -> Operation {
        match self.old {
            None => Operation::Create,
            Some(_) => Operation::Update,
        }
    }
}

/// What the server gave a new object before it was shown to anybody. Webhooks that may change it do
/// not see this, and do not change it; but they may name an object that only had a base.
struct Identity(Option<Vec<(&'static str, Value, bool)>>);

impl Identity {
    fn lift(change: Change<'_>, new: &mut Value) -> Self {
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
