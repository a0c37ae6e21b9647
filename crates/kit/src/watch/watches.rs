//! The watches of a process.

use std::{
    any::{Any, TypeId, type_name},
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    Cache, CachedObject, Trim, UndecodableObject,
    cache::CacheLease,
    raw::{WatchSource, WatchTask, decode_event},
    selector::Selector,
};
use crate::{
    clock::Clock,
    key::Key,
    own_writes::{IsSelected, ObservedWatch, ObservedWatches, WatchAt},
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

/// What identifies a cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CacheId {
    cluster: Arc<str>,
    type_id: TypeId,
    address: String,
    selection: Selection,
    trim: Option<&'static str>,
}

/// The objects of a cache that is requested, and the client that reads them.
struct Requested {
    client: Client,
    address: String,
    selection: Selection,
}

impl Requested {
    fn of<K: Resource>(api: Api<K>, selection: Selection) -> Self {
        Self {
            address: api.resource_url().to_owned(),
            client: api.into_client(),
            selection,
        }
    }
}

/// The number of watches that can be requested before the runner starts them.
const MAX_UNSTARTED_WATCHES: usize = 4096;

/// How long a cache without readers is kept: a caller that asks for it again soon pays no listing.
const UNUSED_CACHE_TIME: Duration = Duration::from_mins(1);

/// The caches of a process. Cheap to clone.
#[derive(Clone)]
pub struct Watches {
    /// The name of the cluster whose caches these are; empty for that of the process itself.
    cluster: Arc<str>,
    clock: Clock,
    shared: Arc<SharedWatches>,
    namespaces: Arc<[String]>,
}

struct SharedWatches {
    caches: Mutex<HashMap<CacheId, CacheEntry>>,
    process: Process,
    start: mpsc::Sender<StartedTask>,
    /// Notified when the last clone of a cache is gone.
    released: Arc<Notify>,
}

/// A task to run until it ends or the token is cancelled.
type StartedTask = (WatchTask, CancellationToken);

struct CacheEntry {
    /// A [`Cache`] of the type in the id.
    cache: Box<dyn Any + Send + Sync>,
    state: Box<dyn Fn() -> CacheState + Send + Sync>,
    observed: Arc<dyn ObservedWatch>,
    /// None for a watch of all objects, and for a selector of unknown form.
    selector: Option<Selector>,
    /// The name of the Rust type, which differs between the caches of one address.
    type_name: &'static str,
    lease: Weak<CacheLease>,
    has_subscribers: Box<dyn Fn() -> bool + Send + Sync>,
    unserved: Arc<AtomicBool>,
    stop: CancellationToken,
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
    /// The name of the cluster; empty for that of the process itself.
    pub cluster: String,
    /// The watched path of the API.
    pub address: String,
    /// The selectors of the watch.
    pub selection: Selection,
    /// Whether the first listing is complete.
    pub synced: bool,
    /// Whether the server does not serve the kind, so that the watch waits for it.
    pub unserved: bool,
    /// The number of cached objects.
    pub objects: usize,
    /// The objects that cannot be decoded.
    pub undecodable: BTreeMap<Key, UndecodableObject>,
}

/// Runs the watches that were requested from [`Watches`].
pub struct WatchRunner {
    requested: mpsc::Receiver<StartedTask>,
    clock: Clock,
    shared: Arc<SharedWatches>,
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
        let shared = Arc::new(SharedWatches {
            caches: Mutex::default(),
            process,
            start,
            released: Arc::default(),
        });
        let watches = Self {
            cluster: Arc::default(),
            clock,
            shared: shared.clone(),
            namespaces: Arc::default(),
        };
        let runner = WatchRunner {
            requested,
            clock,
            shared,
        };
        (watches, runner)
    }

    /// The watches of another cluster in the same process. Its caches are its own: the client must be one
    /// of that cluster. The name is for logs and `/debug/state.json`.
    pub fn in_cluster(&self, name: &str) -> Self {
        Self {
            cluster: name.into(),
            ..self.clone()
        }
    }

    /// The name of the cluster; empty for that of the process itself.
    pub fn cluster(&self) -> &Arc<str> {
        &self.cluster
    }

    /// The cache of the objects that `api` and `selection` name. Equal requests share one cache. With
    /// `Metadata<K>` only metadata is transferred and stored.
    pub fn cache<K>(&self, api: Api<K>, selection: Selection) -> Result<Cache<K>, WatchesStopped>
    where
        K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    {
        self.cache_of(Requested::of(api, selection), None, K::metadata_api())
    }

    /// A cache of the same objects in the form `K`, each read as a whole from its JSON. For kinds of which
    /// there are very many: `K` need not have the metadata that every resource has.
    pub fn compact_cache<S, K>(
        &self,
        api: Api<S>,
        selection: Selection,
    ) -> Result<Cache<K>, WatchesStopped>
    where
        S: Resource,
        K: CachedObject + Clone + DeserializeOwned + Send + Sync + 'static,
    {
        self.cache_of(Requested::of(api, selection), None, false)
    }

    /// The same as [`Self::cache`], of which only what `trim` leaves is kept in memory.
    pub fn trimmed_cache<K>(
        &self,
        api: Api<K>,
        selection: Selection,
        trim: Trim<K>,
    ) -> Result<Cache<K>, WatchesStopped>
    where
        K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    {
        self.cache_of(Requested::of(api, selection), Some(trim), K::metadata_api())
    }

    /// With `metadata_only`, the server is asked for no more than that.
    fn cache_of<K>(
        &self,
        requested: Requested,
        trim: Option<Trim<K>>,
        metadata_only: bool,
    ) -> Result<Cache<K>, WatchesStopped>
    where
        K: CachedObject + Clone + DeserializeOwned + Send + Sync + 'static,
    {
        let Requested {
            client,
            address,
            selection,
        } = requested;
        let mut caches = self.shared.caches.lock();
        let id = CacheId {
            cluster: self.cluster.clone(),
            type_id: TypeId::of::<K>(),
            address,
            selection,
            trim: trim.map(|trim| trim.name),
        };
        let lease = || Arc::new(CacheLease(self.shared.released.clone()));
        if let Some(entry) = caches.get_mut(&id)
            && let Some(cache) = entry.cache.downcast_ref::<Cache<K>>()
        {
            let lease = entry.lease.upgrade().unwrap_or_else(lease);
            entry.lease = Arc::downgrade(&lease);
            return Ok(cache.leased(lease));
        }
        let (cache, unserved) = (Cache::new(self.clock, trim), Arc::<AtomicBool>::default());
        let source = WatchSource {
            address: id.address.clone(),
            selection: id.selection.clone(),
            client,
            telemetry: self.process().telemetry().clone(),
            unserved: unserved.clone(),
        };
        let stop = CancellationToken::new();
        let task = watch(source, cache.clone(), metadata_only);
        let started = self.shared.start.try_send((task, stop.clone()));
        started.map_err(|_| WatchesStopped)?;
        let (viewed, heard) = (cache.clone(), cache.clone());
        let state = move || CacheState {
            synced: viewed.is_synced(),
            objects: viewed.len(),
            undecodable: viewed.undecodable(),
        };
        let whole = id.selection == Selection::default();
        let lease = lease();
        let entry = CacheEntry {
            cache: Box::new(cache.clone()),
            state: Box::new(state),
            observed: Arc::new(cache.clone()),
            selector: (!whole).then(|| Selector::parse(&id.selection)).flatten(),
            type_name: type_name::<K>(),
            lease: Arc::downgrade(&lease),
            has_subscribers: Box::new(move || heard.has_subscribers()),
            unserved,
            stop,
        };
        caches.insert(id, entry);
        Ok(cache.leased(lease))
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
        K: CachedObject + Send + Sync + 'static,
    {
        let whole = Cache::union(self.clock, parts.clone());
        let union = whole.clone();
        let synced = async move {
            for part in parts.values() {
                part.synced().await;
            }
            union.mark_synced();
        };
        let task: WatchTask = Box::pin(synced);
        let started = self.shared.start.try_send((task, CancellationToken::new()));
        started.map(|()| whole).map_err(|_| WatchesStopped)
    }

    /// The addresses of the watches whose first listing is not complete, without those of kinds that the
    /// server does not serve.
    pub fn unsynced(&self) -> Vec<String> {
        let states = self.states().into_iter();
        let waiting = states.filter(|state| !state.synced && !state.unserved);
        waiting.map(|state| state.address()).collect()
    }

    /// The addresses of the watches of kinds that the server does not serve. What needs them waits; the
    /// rest of the process does not.
    pub fn unserved(&self) -> Vec<String> {
        let states = self.states().into_iter();
        let unserved = states.filter(|state| state.unserved);
        unserved.map(|state| state.address()).collect()
    }

    /// A snapshot of every watch, ordered by address.
    pub fn states(&self) -> Vec<WatchState> {
        let caches = self.shared.caches.lock();
        let states = caches.iter().map(|(id, entry)| {
            let state = (entry.state)();
            WatchState {
                cluster: id.cluster.to_string(),
                address: id.address.clone(),
                selection: id.selection.clone(),
                synced: state.synced,
                unserved: entry.unserved.load(Ordering::Relaxed),
                objects: state.objects,
                undecodable: state.undecodable,
            }
        });
        let mut states: Vec<_> = states.collect();
        states.sort_by(|one, other| {
            (&one.cluster, &one.address).cmp(&(&other.cluster, &other.address))
        });
        states
    }

    /// The process that these watches belong to.
    pub fn process(&self) -> &Process {
        &self.shared.process
    }
}

impl WatchState {
    /// The path, with the name of the cluster if it is another one than that of the process.
    fn address(&self) -> String {
        match &*self.cluster {
            "" => self.address.clone(),
            cluster => format!("{} in {cluster}", self.address),
        }
    }
}

impl SharedWatches {
    /// Ends the watches of caches that no reader and no subscriber needs, and drops their objects.
    fn drop_unused(&self) {
        let mut unused = Vec::new();
        let mut caches = self.caches.lock();
        caches.retain(|id, entry| {
            let is_used = entry.lease.strong_count() > 0 || (entry.has_subscribers)();
            if !is_used {
                entry.stop.cancel();
                unused.push(id.address.clone());
            }
            is_used
        });
        drop(caches);
        if !unused.is_empty() {
            tracing::debug!(?unused, "caches without readers are dropped");
        }
    }
}

impl ObservedWatches for Watches {
    fn at(&self, address: &str) -> Vec<(&'static str, Arc<dyn ObservedWatch>)> {
        let found = self.at_cluster(&self.cluster, address).into_iter();
        let whole = found.filter(|watch| watch.selector.is_none());
        whole.map(|one| (one.type_name, one.watch)).collect()
    }

    fn at_cluster(&self, cluster: &str, address: &str) -> Vec<WatchAt> {
        let caches = self.shared.caches.lock();
        let of = |id: &CacheId, entry: &CacheEntry| {
            let known = entry.selector.is_some() || id.selection == Selection::default();
            *id.cluster == *cluster && id.address == address && known
        };
        let found = caches.iter().filter(|(id, entry)| of(id, entry));
        found
            .map(|(_, entry)| WatchAt {
                type_name: entry.type_name,
                watch: entry.observed.clone(),
                selector: entry.selector.clone().map(|selector| {
                    Arc::new(move |object: &Value| selector.matches(object)) as IsSelected
                }),
            })
            .collect()
    }
}

impl WatchRunner {
    /// Runs the watches until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut watches = JoinSet::new();
        let mut sweep_at = Duration::MAX;
        loop {
            let released = self.shared.released.clone();
            tokio::select! {
                () = stop.cancelled() => return,
                Some((task, dropped)) = self.requested.recv() => {
                    watches.spawn(async move { dropped.run_until_cancelled(task).await; });
                }
                () = released.notified() => {
                    sweep_at = sweep_at.min(self.clock.uptime() + UNUSED_CACHE_TIME);
                }
                () = self.clock.sleep_until(sweep_at), if sweep_at < Duration::MAX => {
                    sweep_at = Duration::MAX;
                    self.shared.drop_unused();
                }
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
fn watch<K>(source: WatchSource, cache: Cache<K>, metadata_only: bool) -> WatchTask
where
    K: CachedObject + Clone + DeserializeOwned + Send + Sync + 'static,
{
    if metadata_only {
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
