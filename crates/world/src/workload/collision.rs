//! Names that turn out to be another's.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use neap_kit::{
    apply::{Error, Object},
    wiring::Tools,
};

/// Whoever makes objects under names that follow from their content, and counts how often such a
/// name was taken.
pub(crate) trait Colliding: Object + PartialEq {
    fn collisions(&mut self) -> &mut Option<i32>;
}

impl Colliding for Deployment {
    fn collisions(&mut self) -> &mut Option<i32> {
        &mut self.status.get_or_insert_default().collision_count
    }
}

impl Colliding for DaemonSet {
    fn collisions(&mut self) -> &mut Option<i32> {
        &mut self.status.get_or_insert_default().collision_count
    }
}

impl Colliding for StatefulSet {
    fn collisions(&mut self) -> &mut Option<i32> {
        &mut self.status.get_or_insert_default().collision_count
    }
}

/// The name of what is made next is another's: the one after it is tried.
pub(crate) async fn rename<K: Colliding>(tools: &Tools, owner: &K) -> Result<(), Error> {
    let mut renamed = owner.clone();
    let count = renamed.collisions();
    *count = Some(count.unwrap_or(0) + 1);
    tools.report(owner, &renamed).await
}
