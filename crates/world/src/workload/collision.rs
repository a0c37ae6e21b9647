//! Names derived from content that are already taken.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use neap_kit::{
    apply::{Error, Object},
    builder::Tools,
};

/// A kind that creates objects under names derived from their content, and counts in its status how
/// often such a name was taken.
pub(crate) trait HasCollisionCount: Object + PartialEq {
    fn collision_count(&mut self) -> &mut Option<i32>;
}

impl HasCollisionCount for Deployment {
    fn collision_count(&mut self) -> &mut Option<i32> {
        &mut self.status.get_or_insert_default().collision_count
    }
}

impl HasCollisionCount for DaemonSet {
    fn collision_count(&mut self) -> &mut Option<i32> {
        &mut self.status.get_or_insert_default().collision_count
    }
}

impl HasCollisionCount for StatefulSet {
    fn collision_count(&mut self) -> &mut Option<i32> {
        &mut self.status.get_or_insert_default().collision_count
    }
}

/// Counts a name collision in the owner's status, so that the next reconcile derives another name.
pub(crate) async fn increment_collision_count<K: HasCollisionCount>(
    tools: &Tools,
    owner: &K,
) -> Result<(), Error> {
    let mut renamed = owner.clone();
    let count = renamed.collision_count();
    *count = Some(count.unwrap_or(0) + 1);
    tools.update_status(owner, &renamed).await
}
