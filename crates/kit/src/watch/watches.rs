//! The watches of a process.

use std::{
    any::{Any, TypeId, type_name},
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use kube::{Api, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    Cache, UndecodableObject,
    raw::{WatchSource, WatchTask, decode_event},
};
use crate::{
    clock::Clock,
    key::Key,
    own_writes::{ObservedWatch, ObservedWatches},
    process::Process,
};

/// Selectors that restrict a watch, besides the namespace of its API.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Selection {
    /// A label selector.
    pub labels: Option<String>,
    /// A field selector.
    pub fields: Option<String>,
}

/// What identifies a cache: the Rust type, the address and the selection.
type CacheId = (TypeId, String, Selection);

/// The number of watches that can be requested before the runner starts them.
const MAX_UNSTARTED_WATCHES: usize = 4096;

/// The caches of a process. Cheap to clone.
#[derive(Clone)]
pub struct Watches {
    clock: Clock,
    shared: Arc<SharedWatches>,
    namespaces: Arc<[String]>,
}

struct SharedWatches {
    caches: Mutex<HashMap<CacheId, CacheEntry>>,
    process: Process,
    start: mpsc::Sender<WatchTask>,
}

struct CacheEntry {
    /// A [`Cache`] of the type in the id.
    cache: Box<dyn Any + Send + Sync>,
    state: Box<dyn Fn() -> CacheState + Send + Sync>,
    observed: Arc<dyn ObservedWatch>,
    /// The name of the Rust type, which differs between the caches of one address.
    type_name: &'static str,
}

/// A snapshot of a cache of any type.
struct CacheState {
    synced: bool,
    objects: usize,
    undecodable: BTreeMap<Key, UndecodableObject>,
}

/// A snapshot of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchState {
    /// The watched path of the API.
    pub address: String,
    /// The selectors of the watch.
    pub selection: Selection,
    /// Whether the first listing is complete.
    pub synced: bool,
    /// The number of cached objects.
    pub objects: usize,
    /// The objects that cannot be decoded.
    pub undecodable: BTreeMap<Key, UndecodableObject>,
}

/// Runs the watches that were requested from [`Watches`].
pub struct WatchRunner {
    requested: mpsc::Receiver<WatchTask>,
}

/// No more watches can be requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the watches of this process have stopped, or too many were requested before they started")]
pub struct WatchesStopped;

impl Watches {
    /// The watches of a process, and what runs them. Nothing is watched before the runner runs.
    pub fn new(clock: Clock) -> (Self, WatchRunner) {
        Self::in_process(clock, Process::default())
    }

    /// The same for a given process. It is held here because every component of the process holds the
    /// watches.
    pub fn in_process(clock: Clock, process: Process) -> (Self, WatchRunner) {
        let (start, requested) = mpsc::channel(MAX_UNSTARTED_WATCHES);
        let shared = SharedWatches {
            caches: Mutex::default(),
            process,
            start,
        };
        let watches = Self {
            clock,
            shared: Arc::new(shared),
            namespaces: Arc::default(),
        };
        (watches, WatchRunner { requested })
    }

    /// The cache of the objects that `api` and `selection` name. Equal requests share one cache. With
    /// `Metadata<K>` only metadata is transferred and stored.
    pub fn cache<K>(&self, api: Api<K>, selection: Selection) -> Result<Cache<K>, WatchesStopped>
    where
        K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let mut caches = self.shared.caches.lock();
        let id = (TypeId::of::<K>(), api.resource_url().to_owned(), selection);
        let known = caches
            .get(&id)
            .and_then(|entry| entry.cache.downcast_ref::<Cache<K>>());
        if let Some(cache) = known {
            return Ok(cache.clone());
        }
        let cache = Cache::new(self.clock);
        let source = WatchSource {
            address: id.1.clone(),
            selection: id.2.clone(),
            client: api.into_client(),
            telemetry: self.process().telemetry().clone(),
        };
        let task = watch(source, cache.clone());
        self.shared
            .start
            .try_send(task)
            .map_err(|_| WatchesStopped)?;
        let viewed = cache.clone();
        let state = move || CacheState {
            synced: viewed.is_synced(),
            objects: viewed.len(),
            undecodable: viewed.undecodable(),
        };
        let entry = CacheEntry {
            cache: Box::new(cache.clone()),
            state: Box::new(state),
            observed: Arc::new(cache.clone()),
            type_name: type_name::<K>(),
        };
        caches.insert(id, entry);
        Ok(cache)
    }

    /// The same watches for components that may read only these namespaces.
    pub fn in_namespaces(&self, namespaces: impl IntoIterator<Item = String>) -> Self {
        Self {
            namespaces: namespaces.into_iter().collect(),
            ..self.clone()
        }
    }

    /// The clock of the process.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The namespaces that are watched; empty for all.
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// One cache of the objects of all `parts`, each the cache of the namespace that is its key.
    pub fn union<K>(&self, parts: BTreeMap<String, Cache<K>>) -> Result<Cache<K>, WatchesStopped>
    where
        K: Resource + Send + Sync + 'static,
    {
        let whole = Cache::union(self.clock, parts.clone());
        let union = whole.clone();
        let synced = async move {
            for part in parts.values() {
                part.synced().await;
            }
            union.mark_synced();
        };
        let started = self.shared.start.try_send(Box::pin(synced));
        started.map(|()| whole).map_err(|_| WatchesStopped)
    }

    /// The addresses of the watches whose first listing is not complete.
    pub fn unsynced(&self) -> Vec<String> {
        let states = self.states().into_iter();
        let waiting = states.filter(|state| !state.synced);
        waiting.map(|state| state.address).collect()
    }

    /// A snapshot of every watch, ordered by address.
    pub fn states(&self) -> Vec<WatchState> {
        let caches = self.shared.caches.lock();
        let states = caches.iter().map(|((_, address, selection), entry)| {
            let state = (entry.state)();
            WatchState {
                address: address.clone(),
                selection: selection.clone(),
                synced: state.synced,
                objects: state.objects,
                undecodable: state.undecodable,
            }
        });
        let mut states: Vec<_> = states.collect();
        states.sort_unstable_by(|one, other| one.address.cmp(&other.address));
        states
    }

    /// The process that these watches belong to.
    pub fn process(&self) -> &Process {
        &self.shared.process
    }
}

impl ObservedWatches for Watches {
    fn at(&self, address: &str) -> Vec<(&'static str, Arc<dyn ObservedWatch>)> {
        let caches = self.shared.caches.lock();
        let whole = caches.iter().filter(|((_, found, selection), _)| {
            found == address && *selection == Selection::default()
        });
        whole
            .map(|(_, entry)| (entry.type_name, entry.observed.clone()))
            .collect()
    }
}

impl WatchRunner {
    /// Runs the watches until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut watches = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(task) = self.requested.recv() => drop(watches.spawn(task)),
                Some(ended) = watches.join_next() => {
                    // A watch ends only by a panic. Stop: a cache without a watch is stale.
                    if let Err(error) = ended {
                        tracing::error!(%error, "a watch ended");
                        return;
                    }
                }
            }
        }
    }
}

/// The task that keeps `cache` up to date.
fn watch<K>(source: WatchSource, cache: Cache<K>) -> WatchTask
where
    K: Resource + Clone + DeserializeOwned + Send + Sync + 'static,
{
    if K::metadata_api() {
        source.metadata(Box::new(move |event| {
            cache.apply_event(decode_event(event));
        }))
    } else {
        source.objects(Box::new(move |event| {
            cache.apply_event(decode_event(event));
        }))
    }
}

impl fmt::Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watches")
            .field("unsynced", &self.unsynced())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for WatchRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchRunner").finish_non_exhaustive()
    }
}
