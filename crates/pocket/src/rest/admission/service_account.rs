//! The ServiceAccount plugin: new pods run as a service account, which must exist.

use serde_json::Value;

use super::AdmissionWrite;
use crate::{
    kinds::pod,
    rest::{Machine, metadata, update::ObjectPart},
    status::{ApiError, Result},
};

impl Machine {
    /// Gives a new pod its account, token and pull secrets.
    pub(super) async fn give_account(
        &self,
        change: AdmissionWrite<'_>,
        new: &mut Value,
    ) -> Result<()> {
        let resource = &change.served.resource;
        let concerned = resource.group.is_empty() && resource.plural == "pods";
        if !concerned || change.old.is_some() || change.part != ObjectPart::Main {
            return Ok(());
        }
        let seed = self.moment().seed;
        let Err(why) = pod::use_account(new, self, seed) else {
            return Ok(());
        };
        // A client that is refused must find the account in the state we read.
        self.settle_all().await?;
        let name = named(change, new);
        Err(ApiError::forbidden("", "pods", name, &why))
    }
}

/// The name of a new object as its creator knows it: its generateName if the name is not generated
/// yet.
pub(super) fn named<'a>(change: AdmissionWrite<'_>, new: &'a Value) -> &'a str {
    let sent = change.request.body.as_ref().map(|body| &body.value);
    let base = metadata::text(new, "generateName");
    match sent.map_or("", |sent| metadata::text(sent, "name")) {
        "" if !base.is_empty() => base,
        _ => metadata::text(new, "name"),
    }
}
