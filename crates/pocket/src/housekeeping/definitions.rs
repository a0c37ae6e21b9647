//! Definitions that end take their objects with them.

use std::sync::Arc;

use futures::{StreamExt, stream};

use super::{HANDS, Housekeeper, Place, garbage::drop_finalizer};
use crate::{
    kinds,
    rest::{Propagation, Served},
    status::Result,
    store::Object,
};

/// Where definitions are stored.
pub(super) const BUCKET: &str = kinds::DEFINITIONS;

/// The definition of a resource, whether it is a custom one or not.
pub(super) fn of(resource: &str) -> Option<Place> {
    let (group, plural) = resource.split_once('/')?;
    Some((BUCKET.into(), format!("{plural}.{group}").into()))
}

impl Housekeeper {
    /// Removes the objects of a definition that was deleted, then lets it go.
    pub(super) async fn tend_definition(
        &self,
        served: &Served,
        place: &Place,
        object: &Arc<Object>,
    ) -> Result<()> {
        let metadata = object.metadata();
        let finalizer = kinds::DEFINITION_FINALIZER;
        if metadata.deletion_timestamp.is_none()
            || !metadata.finalizers.iter().any(|name| **name == *finalizer)
        {
            return Ok(());
        }
        let Some((plural, group)) = metadata.name.split_once('.') else {
            return Ok(());
        };
        let bucket = format!("{group}/{plural}");
        let Some(instances) = self.machine.registry.by_bucket(&bucket) else {
            return self
                .amend(served, place, object, |value| {
                    drop_finalizer(value, finalizer)
                })
                .await;
        };
        self.empty(&instances, "").await;
        if self.machine.view.store().count(&bucket) > 0 {
            return Ok(());
        }
        self.amend(served, place, object, |value| {
            drop_finalizer(value, finalizer)
        })
        .await
    }

    /// Deletes every object of a resource, in one namespace or in all.
    pub(super) async fn empty(&self, served: &Arc<Served>, namespace: &str) {
        let objects = self
            .machine
            .view
            .store()
            .objects(&served.resource.bucket, namespace);
        stream::iter(objects)
            .for_each_concurrent(HANDS, |(_, object)| async move {
                if object.metadata().deletion_timestamp.is_none() {
                    let _ = self.delete(served, &object, Propagation::Background).await;
                }
            })
            .await;
    }
}
