//! Admission: what may still change or refuse a write after its form was found right.
//!
//! A write meets it twice, as in the real server: [`Machine::mutate`] runs after the request's own
//! fields were booked, so that what admission adds is nobody's, and before validation;
//! [`Machine::confirm`] runs last before the store and changes nothing.

mod service_account;

use serde_json::Value;

use super::{Machine, Request, Served, update::Part};
use crate::status::Result;

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
    /// Lets admission change the object or refuse it.
    pub(super) async fn mutate(
        &self,
        change: Change<'_>,
        new: &mut Value,
        _warnings: &mut Vec<String>,
    ) -> Result<()> {
        self.give_account(change, new).await?;
        Ok(())
    }

    /// Lets admission refuse the object in its last form.
    #[expect(clippy::unused_async, reason = "webhooks answer over the network")]
    pub(super) async fn confirm(
        &self,
        _change: Change<'_>,
        _new: &Value,
        _warnings: &mut Vec<String>,
    ) -> Result<()> {
        Ok(())
    }
}
