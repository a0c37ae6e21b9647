//! Who somebody is: token reviews, self reviews and tokens for service accounts.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    rest::{Machine, Reply, Request, Served, registry::missing},
    status::Result,
};

impl Machine {
    /// Answers a TokenReview, which is in shape and booked already.
    #[expect(clippy::unused_async, reason = "tokens may be looked up")]
    pub(super) async fn review_token(&self, _: &Request, _review: Value) -> Result<Value> {
        Err(missing())
    }

    /// Answers a SelfSubjectReview, which is in shape and booked already.
    #[expect(clippy::unused_async, reason = "as the other reviews")]
    pub(super) async fn review_self(&self, _: &Request, _review: Value) -> Result<Value> {
        Err(missing())
    }

    /// Makes a token for a service account.
    #[expect(clippy::unused_async, reason = "accounts are looked up")]
    pub(super) async fn request_token(&self, _: &Request, _: &Arc<Served>) -> Result<Reply> {
        Err(missing())
    }
}
