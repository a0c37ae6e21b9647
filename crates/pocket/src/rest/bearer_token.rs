//! The user of a bearer token: a static token, or one that the server issued itself.

use std::sync::Arc;

use super::Machine;
use crate::{
    identity::{Holder, Records, Refused, User},
    store::Object,
};

impl Machine {
    /// The user of a token, if it is valid for this server.
    pub(crate) fn bearer(&self, token: &str) -> Option<User> {
        let made_here = || self.made_here(token, self.accounts.audiences()).ok();
        self.listed(token)
            .or_else(|| made_here().map(|holder| holder.user))
    }

    /// The user of a token, if it is valid for one of `audiences`.
    pub(crate) fn holder(&self, token: &str, audiences: &[String]) -> Result<Holder, Refused> {
        // Static tokens have no audiences: they are valid for this server.
        let mut ours = self.accounts.audiences().to_vec();
        ours.retain(|audience| audiences.contains(audience));
        if !ours.is_empty()
            && let Some(user) = self.listed(token)
        {
            return Ok(Holder {
                user: user.authenticated(),
                audiences: ours,
            });
        }
        self.made_here(token, audiences)
    }

    fn made_here(&self, token: &str, audiences: &[String]) -> Result<Holder, Refused> {
        let now = self.environment.clock.now();
        self.accounts.holder(token, audiences, now, self)
    }

    fn listed(&self, token: &str) -> Option<User> {
        self.authenticator.as_ref()?.token(token)
    }
}

impl Records for Machine {
    fn find(&self, bucket: &str, path: &str) -> Option<Arc<Object>> {
        self.view.store().head(bucket, path)?.object
    }
}
