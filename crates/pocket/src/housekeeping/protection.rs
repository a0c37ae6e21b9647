//! Storage protection: storage that was deleted while in use is removed with its last user.

use super::{Housekeeper, ObjectKey, garbage_collection::drop_finalizer};
use crate::{
    kinds,
    rest::Served,
    status::Result,
    store::{Event, Object},
};

impl Housekeeper {
    /// Deleted claims that may have lost their last user with this event.
    pub(super) fn possibly_released(&self, event: &Event) -> Vec<ObjectKey> {
        if !kinds::may_hold_claims(&event.resource, event.object.json()) {
            return Vec::new();
        }
        let namespace = event.path.split_once('/').map_or("", |(home, _)| home);
        let claims = self.machine.view.store().objects(kinds::CLAIMS, namespace);
        claims
            .into_iter()
            .filter(|(_, claim)| claim.metadata().deletion_timestamp.is_some())
            .map(|(path, _)| (kinds::CLAIMS.into(), path))
            .collect()
    }

    /// Removes the protection finalizer of deleted storage that is not in use. True if it did.
    pub(super) async fn release(
        &self,
        served: &Served,
        place: &ObjectKey,
        object: &Object,
    ) -> Result<bool> {
        if object.metadata().deletion_timestamp.is_none() {
            return Ok(false);
        }
        let Some(finalizer) = kinds::released(&place.0, &object.value(), &self.machine) else {
            return Ok(false);
        };
        self.amend(served, place, object, |value| {
            drop_finalizer(value, finalizer);
        })
        .await?;
        Ok(true)
    }
}
