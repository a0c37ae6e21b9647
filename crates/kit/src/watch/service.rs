//! The watches of a process.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    pin::{Pin, pin},
    sync::Arc,
};

use futures::{Stream, StreamExt};
use kube::{
    Api, Resource,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{Cache, Lenient};
use crate::clock::Clock;

/// Which objects of a kind, beside the namespace that the API was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Selection {
    /// Those whose labels fit this selector.
    pub labels: Option<String>,
    /// Those whose fields fit this selector.
    pub fields: Option<String>,
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
/// The Rust type, the address, and what is selected there.
type Identity = (TypeId, String, Selection);

/// So many watches may be asked for before the service runs them.
const WAITING: usize = 256;

/// Where caches are had. Cheap to copy.
#[derive(Clone)]
pub struct Watches {
    clock: Clock,
    shared: Arc<Shared>,
}

struct Shared {
    caches: Mutex<HashMap<Identity, Entry>>,
    start: mpsc::Sender<Task>,
}

struct Entry {
    /// A [`Cache`] of the type that the identity names.
    cache: Box<dyn Any + Send + Sync>,
    is_synced: Box<dyn Fn() -> bool + Send + Sync>,
}

/// Runs the watches.
pub struct WatchService {
    asked: mpsc::Receiver<Task>,
}

/// No more watches can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the watches of this process have ended, or too many were asked for before they began")]
pub struct Ended;

impl Watches {
    /// Nothing is watched before the service runs.
    pub fn new(clock: Clock) -> (Self, WatchService) {
        let (start, asked) = mpsc::channel(WAITING);
        let shared = Shared {
            caches: Mutex::default(),
            start,
        };
        let watches = Self {
            clock,
            shared: Arc::new(shared),
        };
        (watches, WatchService { asked })
    }

    /// The objects that `api` and `selection` name: the cache that everybody has who asks for the
    /// same. With `Lenient<PartialObjectMeta<K>>` only metadata is transferred and kept.
    pub fn of<K>(&self, api: Api<Lenient<K>>, selection: Selection) -> Result<Cache<K>, Ended>
    where
        K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let mut caches = self.shared.caches.lock();
        let identity = (TypeId::of::<K>(), api.resource_url().to_owned(), selection);
        let known = caches
            .get(&identity)
            .and_then(|entry| entry.cache.downcast_ref::<Cache<K>>());
        if let Some(cache) = known {
            return Ok(cache.clone());
        }
        let cache = Cache::new(self.clock);
        let watch = watch(api, identity.2.clone(), cache.clone());
        self.shared
            .start
            .try_send(Box::pin(watch))
            .map_err(|_| Ended)?;
        let synced = cache.clone();
        let entry = Entry {
            cache: Box::new(cache.clone()),
            is_synced: Box::new(move || synced.is_synced()),
        };
        caches.insert(identity, entry);
        Ok(cache)
    }

    /// The addresses of watches that have not shown everything yet.
    pub fn unsynced(&self) -> Vec<String> {
        let caches = self.shared.caches.lock();
        let waiting = caches.iter().filter(|(_, entry)| !(entry.is_synced)());
        let mut addresses: Vec<_> = waiting.map(|((_, url, _), _)| url.clone()).collect();
        addresses.sort_unstable();
        addresses
    }
}

impl WatchService {
    /// Watches until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut watches = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(task) = self.asked.recv() => drop(watches.spawn(task)),
                Some(ended) = watches.join_next() => {
                    // A watch ends only by a panic, and a cache that stands still misleads.
                    if let Err(error) = ended {
                        tracing::error!(%error, "a watch ended");
                        return;
                    }
                }
            }
        }
    }
}

async fn watch<K>(api: Api<Lenient<K>>, selection: Selection, cache: Cache<K>)
where
    K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
{
    let address = api.resource_url().to_owned();
    let mut events = pin!(events(api, selection));
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => cache.take(event),
            Err(error) => tracing::warn!(watch = address, %error, "a watch is tried again"),
        }
    }
}

fn events<K>(
    api: Api<Lenient<K>>,
    selection: Selection,
) -> impl Stream<Item = watcher::Result<Event<Lenient<K>>>> + use<K>
where
    K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
{
    let config = watcher::Config {
        label_selector: selection.labels,
        field_selector: selection.fields,
        ..watcher::Config::default()
    };
    watcher(api, config).default_backoff()
}

impl fmt::Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watches")
            .field("unsynced", &self.unsynced())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for WatchService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchService").finish_non_exhaustive()
    }
}
