//! Removal of definitions: their objects are removed first.

use std::sync::Arc;

use futures::{StreamExt, stream};

use super::{
    Housekeeper, MAX_CONCURRENT_RECONCILES, ObjectKey, garbage_collection::drop_finalizer,
};
use crate::{
    kinds,
    rest::{Propagation, Served},
    status::Result,
    store::{Event, Object},
};

/// The bucket of definitions in the store.
pub(super) const BUCKET: &str = kinds::DEFINITIONS;

/// The key of the definition that a custom resource would have.
pub(super) fn of(resource: &str) -> Option<ObjectKey> {
    let (group, plural) = resource.split_once('/')?;
    Some((BUCKET.into(), format!("{plural}.{group}").into()))
}

/// Whether the event may free names that a definition had.
pub(super) fn frees_names(event: &Event) -> bool {
    let names = |object: &Object| object.value()["spec"]["names"].take();
    match (&event.previous, event.present()) {
        (Some(before), Some(now)) => names(before) != names(now),
        (_, present) => present.is_none(),
    }
}

impl Housekeeper {
    /// Whether an object is of a resource that nothing defines: it was being created while the
    /// definition was removed. An object whose definition exists and waits for its names stays.
    pub(super) fn is_undefined(&self, place: &ObjectKey) -> bool {
        let served = self.machine.registry.by_bucket(&place.0);
        if served.is_some_and(|served| !served.is_custom()) {
            return false;
        }
        of(&place.0).is_some_and(|definition| self.current(&definition).is_none())
    }

    /// The objects of a definition that was removed by this event.
    pub(super) fn left_behind(&self, event: &Event) -> Vec<ObjectKey> {
        let Some((plural, group)) = event.path.split_once('.') else {
            return Vec::new();
        };
        if event.present().is_some() {
            return Vec::new();
        }
        let bucket: Arc<str> = format!("{group}/{plural}").into();
        let objects = self.machine.view.store().objects(&bucket, "").into_iter();
        objects.map(|(path, _)| (bucket.clone(), path)).collect()
    }

    /// Removes the objects of a deleted definition, then the definition.
    pub(super) async fn reconcile_definition(
        &self,
        served: &Served,
        place: &ObjectKey,
        object: &Arc<Object>,
    ) -> Result<()> {
        let metadata = object.metadata();
        let finalizer = kinds::DEFINITION_FINALIZER;
        if metadata.deletion_timestamp.is_none() {
            return self.offer_names(served, place).await;
        }
        let Some((plural, group)) = metadata.name.split_once('.') else {
            return Ok(());
        };
        let bucket = format!("{group}/{plural}");
        if let Some(instances) = self.machine.registry.by_bucket(&bucket) {
            self.empty(&instances, "").await;
            if self.machine.view.store().count(&bucket) > 0 {
                return Ok(());
            }
        }
        // The same name must not be defined anew before the registry has dropped it.
        let _turn = self.machine.turn(served).await;
        self.amend(served, place, object, |value| {
            drop_finalizer(value, finalizer);
        })
        .await
    }

    /// Accepts the names of a definition that were taken before.
    async fn offer_names(&self, served: &Served, place: &ObjectKey) -> Result<()> {
        let _turn = self.machine.turn(served).await;
        let Some(object) = self.current(place).filter(|object| !is_accepted(object)) else {
            return Ok(());
        };
        self.amend(served, place, &object, |value| {
            self.machine.accept(served, value);
        })
        .await
    }

    /// Definitions that wait for a name to become free.
    pub(super) fn unaccepted(&self) -> Vec<ObjectKey> {
        let all = self.machine.view.store().objects(BUCKET, "").into_iter();
        all.filter(|(_, object)| !is_accepted(object))
            .map(|(path, _)| (BUCKET.into(), path))
            .collect()
    }

    /// Deletes every object of a resource, in one namespace or in all.
    pub(super) async fn empty(&self, served: &Arc<Served>, namespace: &str) {
        let objects = self
            .machine
            .view
            .store()
            .objects(&served.resource.bucket, namespace);
        stream::iter(objects)
            .for_each_concurrent(MAX_CONCURRENT_RECONCILES, |(_, object)| async move {
                if object.metadata().deletion_timestamp.is_none() {
                    let _ = self.delete(served, &object, Propagation::Background).await;
                }
            })
            .await;
    }
}

fn is_accepted(definition: &Object) -> bool {
    let value = definition.value();
    let conditions = value["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions
        .any(|condition| condition["type"] == "NamesAccepted" && condition["status"] == "True")
}
