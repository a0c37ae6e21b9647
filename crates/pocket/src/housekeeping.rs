//! What the server does on its own: garbage collection, namespaces and definitions that end,
//! storage that is released, objects that expire, roles that take their rules from others.
//!
//! One task follows every change of the store. Each duty is told of the change and names the
//! objects to look at again; looking again reads the newest state and does one small thing about
//! it, so doing it twice, or after a restart, does no harm.

mod definitions;
mod expiry;
mod garbage;
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
use garbage::Graph;

/// How many objects are worked on at a time.
const HANDS: usize = 32;
/// How often history and objects with a lifetime are looked at.
const SWEEP: Duration = Duration::from_secs(10);
/// Changes read, and objects worked on, before others get a turn.
const BATCH: usize = 1024;

/// The place of an object: resource and path.
pub(crate) type Place = (Arc<str>, Arc<str>);

/// Follows the store and keeps it tidy.
pub(crate) struct Housekeeper {
    machine: Machine,
    seen: u64,
    graph: Graph,
    expiry: Expiry,
    /// Objects to look at.
    queue: BTreeSet<Place>,
    /// Objects with an owner of a kind that is not served, to look at when kinds come or go.
    puzzles: Mutex<BTreeSet<Place>>,
}

impl Housekeeper {
    pub(crate) fn new(machine: Machine) -> Self {
        Self {
            seen: 0,
            graph: Graph::default(),
            expiry: Expiry::default(),
            queue: BTreeSet::new(),
            puzzles: Mutex::default(),
            machine,
        }
    }

    /// Works until the store can no longer be written.
    pub(crate) async fn run(mut self) {
        self.survey();
        let mut committed = self.machine.view.store().committed();
        let clock = self.machine.environment.clock.clone();
        let mut sweep = clock.sleep(SWEEP);
        loop {
            committed.borrow_and_update();
            self.follow();
            self.work().await;
            if self.machine.view.store().is_broken() {
                return;
            }
            // A busy server forgets and lets expire as well as an idle one.
            if (&mut sweep).now_or_never().is_some() {
                sweep = clock.sleep(SWEEP);
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
                        sweep = clock.sleep(SWEEP);
                        self.sweep().await;
                    }
                }
            }
        }
    }

    fn caught_up(&self) -> bool {
        self.machine.view.store().revision() <= self.seen
    }

    /// Looks at everything once: at the start, and when history ran away.
    fn survey(&mut self) {
        let (revision, objects) = self.machine.view.store().everything();
        self.seen = revision;
        self.graph = Graph::default();
        self.queue.extend(self.gathering());
        let now = self.machine.environment.clock.now();
        let known = self.expiry.known();
        for (resource, path, object) in objects {
            let place = (resource, path);
            let owned = self.graph.note(&place, Some(&object));
            if owned
                || duties(&place, &object)
                || self.is_homeless(&place)
                || self.is_undefined(&place)
            {
                self.queue.insert(place.clone());
            }
            if !known.contains(&object.revision()) {
                self.expiry
                    .note(&self.machine, &place, object.revision(), now);
            }
        }
    }

    /// Takes in what happened since.
    fn follow(&mut self) {
        loop {
            match self.machine.view.store().changes_after(self.seen, BATCH) {
                Ok(events) if events.is_empty() => return,
                Ok(events) => events.iter().for_each(|event| self.note(event)),
                Err(_) => {
                    self.survey();
                    return;
                }
            }
        }
    }

    fn note(&mut self, event: &Event) {
        self.seen = event.revision();
        let place = (event.resource.clone(), event.path.clone());
        // If it still puzzles, it will when it is looked at.
        self.puzzles.get_mut().remove(&place);
        let concerned = self.concerned(event);
        self.queue.extend(concerned);
        let owned = self.graph.note(&place, event.present());
        self.queue.extend(self.home_that_goes(&place));
        self.queue.extend(self.perhaps_released(event));
        self.queue.extend(self.gathers_from(event));
        self.queue.extend(self.quotas_of(event));
        if event.present().is_none() {
            self.graph.bury(event.object.metadata());
            self.queue.extend(definitions::of(&event.resource));
        } else {
            self.expiry
                .note(&self.machine, &place, event.revision(), event.at);
        }
        if &*place.0 == definitions::BUCKET {
            self.queue.append(self.puzzles.get_mut());
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

    /// Looks at everything queued, many at a time.
    async fn work(&mut self) {
        let queue: Vec<Place> = std::mem::take(&mut self.queue).into_iter().collect();
        let keeper = &*self;
        for batch in queue.chunks(BATCH) {
            stream::iter(batch)
                .for_each_concurrent(HANDS, |place| keeper.look(place))
                .await;
            // In memory nothing above ever waits.
            tokio::task::yield_now().await;
        }
    }

    async fn look(&self, place: &Place) {
        let outcome = self.look_closely(place).await;
        if let Err(error) = outcome {
            // A conflict or a vanished object: the change that caused it is on its way here too.
            tracing::debug!(resource = %place.0, path = %place.1, %error, "looked in vain");
        }
    }

    async fn look_closely(&self, place: &Place) -> Result<()> {
        let Some(object) = self.current(place) else {
            return self.restore_furniture(place).await;
        };
        if self.is_undefined(place) {
            self.erase(place, &object).await;
            return Ok(());
        }
        let Some(served) = self.machine.registry.by_bucket(&place.0) else {
            return Ok(());
        };
        if self.is_homeless(place) {
            return self.delete(&served, &object, Propagation::Background).await;
        }
        if &*place.0 == namespaces::BUCKET {
            self.tend_namespace(&served, place, &object).await?;
        }
        if &*place.0 == definitions::BUCKET {
            self.tend_definition(&served, place, &object).await?;
        }
        if &*place.0 == roles::BUCKET {
            self.machine.gather_rules(&place.1).await?;
        }
        if &*place.0 == QUOTAS {
            self.tend_quota(&served, place, &object).await?;
        }
        if self.release(&served, place, &object).await? {
            return Ok(());
        }
        self.collect(&served, place, &object).await
    }

    fn current(&self, place: &Place) -> Option<Arc<Object>> {
        self.machine.view.store().head(&place.0, &place.1)?.object
    }

    async fn sweep(&mut self) {
        let now = self.machine.environment.clock.now();
        self.machine.view.store().expire(now);
        let due = self.expiry.due(&self.machine, now);
        let keeper = &*self;
        stream::iter(due)
            .for_each_concurrent(HANDS, |(place, revision)| async move {
                let object = keeper.current(&place);
                if let Some(object) = object.filter(|object| object.revision() == revision) {
                    keeper.erase(&place, &object).await;
                }
            })
            .await;
    }

    /// Removes an object whatever it says about its end, unless it was written meanwhile.
    async fn erase(&self, place: &Place, object: &Object) {
        let value = object.value();
        let now = self.machine.environment.clock.now();
        let store = self.machine.view.store();
        // Whoever wrote it again meanwhile gave it a new lease of life.
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

    /// Changes an object if it is still the one that was looked at.
    async fn amend(
        &self,
        served: &Served,
        place: &Place,
        seen: &Object,
        change: impl FnOnce(&mut Value),
    ) -> Result<()> {
        let mut value = seen.value();
        change(&mut value);
        // Writing what is there already would bring us back here without end.
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

/// Whether the housekeeper has something to do about an object apart from its owners.
fn duties(place: &Place, object: &Object) -> bool {
    object.metadata().deletion_timestamp.is_some()
        || &*place.0 == namespaces::BUCKET
        || &*place.0 == definitions::BUCKET
        || &*place.0 == QUOTAS
        || namespaces::is_furniture(place)
}

impl fmt::Debug for Housekeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Housekeeper")
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}
