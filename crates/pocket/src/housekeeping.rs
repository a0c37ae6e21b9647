//! The server's own controllers: garbage collection, removal of namespaces and definitions, storage
//! protection, expiry of objects, aggregation of roles.
//!
//! One task follows every change of the store. Each controller receives the change and enqueues the
//! objects to reconcile; a reconcile reads the newest state and takes one small step, so repeating
//! it, or running it after a restart, does no harm.

mod definitions;
mod expiry;
mod garbage_collection;
mod namespaces;
mod protection;
mod quotas;
mod roles;

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, stream};
use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    rest::{Machine, Propagation, QUOTAS, Served},
    status::Result,
    store::{Event, Expect, Object, Put},
};

use expiry::Expiry;
use garbage_collection::Graph;

/// Objects that are reconciled concurrently.
const MAX_CONCURRENT_RECONCILES: usize = 32;
/// The interval at which history and objects with a lifetime are checked.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// Changes read, and objects reconciled, before the task yields.
const BATCH_SIZE: usize = 1024;

/// The key of an object: resource and path.
pub(crate) type ObjectKey = (Arc<str>, Arc<str>);

/// Follows the store and keeps it tidy.
pub(crate) struct Housekeeper {
    machine: Machine,
    seen: u64,
    graph: Graph,
    expiry: Expiry,
    /// Objects to reconcile.
    queue: BTreeSet<ObjectKey>,
    /// Objects with an owner of a kind that is not served, to reconcile when kinds come or go.
    unknown_owners: Mutex<BTreeSet<ObjectKey>>,
}

impl Housekeeper {
    pub(crate) fn new(machine: Machine) -> Self {
        Self {
            seen: 0,
            graph: Graph::default(),
            expiry: Expiry::default(),
            queue: BTreeSet::new(),
            unknown_owners: Mutex::default(),
            machine,
        }
    }

    /// Runs until the store can no longer be written.
    pub(crate) async fn run(mut self) {
        self.survey();
        let mut committed = self.machine.view.store().committed();
        let clock = self.machine.environment.clock.clone();
        let mut sweep = clock.sleep(SWEEP_INTERVAL);
        loop {
            committed.borrow_and_update();
            self.follow();
            self.work().await;
            if self.machine.view.store().is_broken() {
                return;
            }
            // A busy server must trim history and expire objects as well as an idle one.
            if (&mut sweep).now_or_never().is_some() {
                sweep = clock.sleep(SWEEP_INTERVAL);
                self.sweep().await;
            }
            if self.caught_up() && self.queue.is_empty() {
                tokio::select! {
                    changed = committed.changed() => {
                        if changed.is_err() {
                            return;
                        }
                    }
                    () = &mut sweep => {
                        sweep = clock.sleep(SWEEP_INTERVAL);
                        self.sweep().await;
                    }
                }
            }
        }
    }

    fn caught_up(&self) -> bool {
        self.machine.view.store().revision() <= self.seen
    }

    /// Enqueues every object: at the start, and when the history was compacted past the task's
    /// position.
    fn survey(&mut self) {
        let (revision, objects) = self.machine.view.store().everything();
        self.seen = revision;
        self.graph = Graph::default();
        self.queue.extend(self.gathering());
        let now = self.machine.environment.clock.now();
        let known = self.expiry.known();
        for (resource, path, object) in objects {
            let place = (resource, path);
            let owned = self.graph.record(&place, Some(&object));
            if owned
                || duties(&place, &object)
                || self.is_namespace_removed(&place)
                || self.is_undefined(&place)
            {
                self.queue.insert(place.clone());
            }
            if !known.contains(&object.revision()) {
                self.expiry
                    .record(&self.machine, &place, object.revision(), now);
            }
        }
    }

    /// Reads the changes since the last call.
    fn follow(&mut self) {
        loop {
            match self
                .machine
                .view
                .store()
                .changes_after(self.seen, BATCH_SIZE)
            {
                Ok(events) if events.is_empty() => return,
                Ok(events) => events.iter().for_each(|event| self.record(event)),
                Err(_) => {
                    self.survey();
                    return;
                }
            }
        }
    }

    fn record(&mut self, event: &Event) {
        self.seen = event.revision();
        let place = (event.resource.clone(), event.path.clone());
        // If the owner is still unknown, the reconcile adds it again.
        self.unknown_owners.get_mut().remove(&place);
        let concerned = self.concerned(event);
        self.queue.extend(concerned);
        let owned = self.graph.record(&place, event.present());
        self.queue.extend(self.terminating_namespace(&place));
        self.queue.extend(self.possibly_released(event));
        self.queue.extend(self.gathers_from(event));
        self.queue.extend(self.quotas_of(event));
        if event.present().is_none() {
            self.graph.record_removal(event.object.metadata());
            self.queue.extend(definitions::of(&event.resource));
        } else {
            self.expiry
                .record(&self.machine, &place, event.revision(), event.at);
        }
        if &*place.0 == definitions::BUCKET {
            self.queue.append(self.unknown_owners.get_mut());
            if definitions::frees_names(event) {
                self.queue.extend(self.unaccepted());
            }
            self.queue.extend(self.left_behind(event));
        }
        if owned
            || duties(&place, &event.object)
            || event.present().is_some() && self.is_undefined(&place)
        {
            self.queue.insert(place);
        }
    }

    /// Reconciles everything queued, many objects at a time.
    async fn work(&mut self) {
        let queue: Vec<ObjectKey> = std::mem::take(&mut self.queue).into_iter().collect();
        let keeper = &*self;
        for batch in queue.chunks(BATCH_SIZE) {
            stream::iter(batch)
                .for_each_concurrent(MAX_CONCURRENT_RECONCILES, |place| keeper.reconcile(place))
                .await;
            // In memory nothing above ever waits.
            tokio::task::yield_now().await;
        }
    }

    async fn reconcile(&self, place: &ObjectKey) {
        let outcome = self.reconcile_object(place).await;
        if let Err(error) = outcome {
            // A conflict or a vanished object: the change that caused it is on its way here too.
            tracing::debug!(resource = %place.0, path = %place.1, %error, "reconcile failed");
        }
    }

    async fn reconcile_object(&self, place: &ObjectKey) -> Result<()> {
        let Some(object) = self.current(place) else {
            return self.restore_standard_object(place).await;
        };
        if self.is_undefined(place) {
            self.erase(place, &object).await;
            return Ok(());
        }
        let Some(served) = self.machine.registry.by_bucket(&place.0) else {
            return Ok(());
        };
        if self.is_namespace_removed(place) {
            return self.delete(&served, &object, Propagation::Background).await;
        }
        if &*place.0 == namespaces::BUCKET {
            self.reconcile_namespace(&served, place, &object).await?;
        }
        if &*place.0 == definitions::BUCKET {
            self.reconcile_definition(&served, place, &object).await?;
        }
        if &*place.0 == roles::BUCKET {
            self.machine.gather_rules(&place.1).await?;
        }
        if &*place.0 == QUOTAS {
            self.reconcile_quota(&served, place, &object).await?;
        }
        if self.release(&served, place, &object).await? {
            return Ok(());
        }
        self.collect(&served, place, &object).await
    }

    fn current(&self, place: &ObjectKey) -> Option<Arc<Object>> {
        self.machine.view.store().head(&place.0, &place.1)?.object
    }

    async fn sweep(&mut self) {
        let now = self.machine.environment.clock.now();
        self.machine.view.store().expire(now);
        let due = self.expiry.due(&self.machine, now);
        let keeper = &*self;
        stream::iter(due)
            .for_each_concurrent(MAX_CONCURRENT_RECONCILES, |(place, revision)| async move {
                let object = keeper.current(&place);
                if let Some(object) = object.filter(|object| object.revision() == revision) {
                    keeper.erase(&place, &object).await;
                }
            })
            .await;
    }

    /// Removes an object regardless of its finalizers and grace period, unless it was written
    /// meanwhile.
    async fn erase(&self, place: &ObjectKey, object: &Object) {
        let value = object.value();
        let now = self.machine.environment.clock.now();
        let store = self.machine.view.store();
        // A write in the meantime renewed the object's lifetime.
        let _ = store
            .write(
                &place.0,
                &place.1,
                Expect::Revision(object.revision()),
                Put::Gone(&value),
                now,
            )
            .await;
    }

    /// Changes an object if it is still at the revision that was read.
    async fn amend(
        &self,
        served: &Served,
        place: &ObjectKey,
        seen: &Object,
        change: impl FnOnce(&mut Value),
    ) -> Result<()> {
        let mut value = seen.value();
        change(&mut value);
        // An unchanged write would enqueue the object without end.
        if value == seen.value() {
            return Ok(());
        }
        let written = self.machine.put(served, &place.1, seen, &value).await?;
        match written {
            Some(_) => Ok(()),
            None => Err(served.stale(&seen.metadata().name)),
        }
    }
}

/// Whether an object needs a reconcile apart from its owners.
fn duties(place: &ObjectKey, object: &Object) -> bool {
    object.metadata().deletion_timestamp.is_some()
        || &*place.0 == namespaces::BUCKET
        || &*place.0 == definitions::BUCKET
        || &*place.0 == QUOTAS
        || namespaces::is_standard_object(place)
}

impl fmt::Debug for Housekeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Housekeeper")
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}
