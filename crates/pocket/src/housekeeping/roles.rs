//! Cluster roles that take their rules from others, looked at when one of those changes.

use super::{Housekeeper, Place};
use crate::{access::CLUSTER_ROLES, store::Event};

/// Where cluster roles are stored.
pub(super) const BUCKET: &str = CLUSTER_ROLES;

impl Housekeeper {
    /// Every role that takes its rules from others.
    pub(super) fn gathering(&self) -> Vec<Place> {
        let names = self.machine.access.aggregating();
        let place = |name: Box<str>| (BUCKET.into(), name.into());
        names.into_iter().map(place).collect()
    }

    /// The roles that may take something else from others after this change.
    pub(super) fn gathers_from(&self, event: &Event) -> Vec<Place> {
        if &*event.resource != BUCKET {
            return Vec::new();
        }
        // There are few of them: which of them select this role is found out by looking.
        self.gathering()
    }
}
