//! Keeps the status of ResourceQuotas: what their namespace has used.

use super::{Housekeeper, ObjectKey};
use crate::{
    admission::plugins::quota,
    rest::{QUOTAS, Served},
    status::Result,
    store::{Event, Object},
};

impl Housekeeper {
    /// The quotas whose status may change with this event.
    pub(super) fn quotas_of(&self, event: &Event) -> Vec<ObjectKey> {
        let store = self.machine.view.store();
        let Some((namespace, _)) = event.path.split_once('/') else {
            return Vec::new();
        };
        if store.count(QUOTAS) == 0 {
            return Vec::new();
        }
        let quotas = store.objects(QUOTAS, namespace).into_iter();
        quotas.map(|(path, _)| (QUOTAS.into(), path)).collect()
    }

    /// Brings the status of a quota up to date.
    pub(super) async fn reconcile_quota(
        &self,
        served: &Served,
        place: &ObjectKey,
        object: &Object,
    ) -> Result<()> {
        let namespace = &object.metadata().namespace;
        self.amend(served, place, object, |value| {
            let used = self.machine.used(value, namespace);
            value["status"] = quota::status(value, &used);
        })
        .await
    }
}
