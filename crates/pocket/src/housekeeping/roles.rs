//! Aggregated cluster roles, reconciled when a role they aggregate changes.

use super::{Housekeeper, ObjectKey};
use crate::{access::CLUSTER_ROLES, store::Event};

/// The bucket of cluster roles in the store.
pub(super) const BUCKET: &str = CLUSTER_ROLES;

impl Housekeeper {
    /// Every cluster role with an aggregation rule.
    pub(super) fn gathering(&self) -> Vec<ObjectKey> {
        let names = self.machine.access.aggregating();
        let place = |name: Box<str>| (BUCKET.into(), name.into());
        names.into_iter().map(place).collect()
    }

    /// The aggregated roles that this change may affect.
    pub(super) fn gathers_from(&self, event: &Event) -> Vec<ObjectKey> {
        if &*event.resource != BUCKET {
            return Vec::new();
        }
        // There are few of them: the reconcile finds out which of them select this role.
        self.gathering()
    }
}
