//! New pods run as a service account, which must exist.

use serde_json::Value;

use super::Change;
use crate::{
    kinds::pod,
    rest::{Machine, metadata, update::Part},
    status::{ApiError, Result},
};

impl Machine {
    /// Gives a new pod its account, token and pull secrets.
    pub(super) async fn give_account(&self, change: Change<'_>, new: &mut Value) -> Result<()> {
        let resource = &change.served.resource;
        let concerned = resource.group.is_empty() && resource.plural == "pods";
        if !concerned || change.old.is_some() || change.part != Part::Main {
            return Ok(());
        }
        let seed = self.moment().seed;
        let Err(why) = pod::use_account(new, self, seed) else {
            return Ok(());
        };
        // Whoever looks must find the account as we saw it.
        self.settle_all().await?;
        let name = named(change, new);
        Err(ApiError::forbidden("", "pods", name, &why))
    }
}

/// The name of a new object as its creator knows it: the base of a name that is yet to be made.
pub(super) fn named<'a>(change: Change<'_>, new: &'a Value) -> &'a str {
    let sent = change.request.body.as_ref().map(|body| &body.value);
    let base = metadata::text(new, "generateName");
    match sent.map_or("", |sent| metadata::text(sent, "name")) {
        "" if !base.is_empty() => base,
        _ => metadata::text(new, "name"),
    }
}
