//! The watches of a process.

use std::{
    any::{Any, TypeId, type_name},
    collections::{BTreeMap, HashMap},
    fmt,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use futures::{Stream, StreamExt};
use kube::{
    Api, Resource,
    runtime::{
        WatchStreamExt,
        utils::Backoff,
        watcher::{self, DefaultBackoff, Event, watcher},
    },
};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{Cache, Lenient, Unreadable};
use crate::{
    clock::Clock,
    echo::{Echo, Echoes},
    key::Key,
    planted,
    process::Process,
    telemetry::{Telemetry, WatchBroke, WatchTold},
};

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
const WAITING: usize = 4096;

/// Where caches are had. Cheap to copy.
#[derive(Clone)]
pub struct Watches {
    clock: Clock,
    shared: Arc<Shared>,
    namespaces: Arc<[String]>,
}

struct Shared {
    caches: Mutex<HashMap<Identity, Entry>>,
    process: Process,
    start: mpsc::Sender<Task>,
}

struct Entry {
    /// A [`Cache`] of the type that the identity names.
    cache: Box<dyn Any + Send + Sync>,
    look: Box<dyn Fn() -> Sight + Send + Sync>,
    echo: Arc<dyn Echo>,
    /// Which of the caches at an address this is.
    name: &'static str,
}

/// What is seen of a cache of any type.
struct Sight {
    synced: bool,
    objects: usize,
    unreadable: BTreeMap<Key, Unreadable>,
}

/// A watch as it was when somebody looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchState {
    /// The path of what is watched.
    pub address: String,
    /// Which objects of it.
    pub selection: Selection,
    /// Whether everything that was there when it began is known.
    pub synced: bool,
    /// How many objects are known.
    pub objects: usize,
    /// Those that cannot be decoded, and why.
    pub unreadable: BTreeMap<Key, Unreadable>,
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
        Self::in_process(clock, Process::default())
    }

    /// The same for a process of which something is known already. It travels with the watches,
    /// because everybody who works in it has them.
    pub fn in_process(clock: Clock, process: Process) -> (Self, WatchService) {
        let (start, asked) = mpsc::channel(WAITING);
        let shared = Shared {
            caches: Mutex::default(),
            process,
            start,
        };
        let watches = Self {
            clock,
            shared: Arc::new(shared),
            namespaces: Arc::default(),
        };
        (watches, WatchService { asked })
    }

    /// The objects that `api` and `selection` name: the cache that everybody has who asks for the
    /// same. With `Lenient<Metadata<K>>` only metadata is transferred and kept.
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
        let telemetry = self.process().telemetry().clone();
        let watch = watch(api, identity.2.clone(), cache.clone(), telemetry);
        self.shared
            .start
            .try_send(Box::pin(watch))
            .map_err(|_| Ended)?;
        let seen = cache.clone();
        let look = move || Sight {
            synced: seen.is_synced(),
            objects: seen.len(),
            unreadable: seen.unreadable(),
        };
        let entry = Entry {
            cache: Box::new(cache.clone()),
            look: Box::new(look),
            echo: Arc::new(cache.clone()),
            name: type_name::<K>(),
        };
        caches.insert(identity, entry);
        Ok(cache)
    }

    /// The same watches for those who look at some namespaces only, because they may see no others.
    pub fn within(&self, namespaces: impl IntoIterator<Item = String>) -> Self {
        Self {
            namespaces: namespaces.into_iter().collect(),
            ..self.clone()
        }
    }

    /// The time that everybody goes by who has these watches.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The namespaces that are looked at; all of them if none is named.
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// What all `parts` show, in one cache: each shows a kind in the namespace of its name.
    pub fn together<K>(&self, parts: BTreeMap<String, Cache<K>>) -> Result<Cache<K>, Ended>
    where
        K: Resource + Send + Sync + 'static,
    {
        let whole = Cache::together(self.clock, parts.clone());
        let known = whole.clone();
        let complete = async move {
            for part in parts.values() {
                part.synced().await;
            }
            known.complete();
        };
        let begun = self.shared.start.try_send(Box::pin(complete));
        begun.map(|()| whole).map_err(|_| Ended)
    }

    /// The addresses of watches that have not shown everything yet.
    pub fn unsynced(&self) -> Vec<String> {
        let states = self.states().into_iter();
        let waiting = states.filter(|state| !state.synced);
        waiting.map(|state| state.address).collect()
    }

    /// Every watch as it is now, by address.
    pub fn states(&self) -> Vec<WatchState> {
        let caches = self.shared.caches.lock();
        let states = caches.iter().map(|((_, address, selection), entry)| {
            let sight = (entry.look)();
            WatchState {
                address: address.clone(),
                selection: selection.clone(),
                synced: sight.synced,
                objects: sight.objects,
                unreadable: sight.unreadable,
            }
        });
        let mut states: Vec<_> = states.collect();
        states.sort_unstable_by(|one, other| one.address.cmp(&other.address));
        states
    }

    /// What there is one of in this process.
    pub fn process(&self) -> &Process {
        &self.shared.process
    }
}

impl Echoes for Watches {
    fn at(&self, address: &str) -> Vec<(&'static str, Arc<dyn Echo>)> {
        let caches = self.shared.caches.lock();
        let whole = caches.iter().filter(|((_, found, selection), _)| {
            found == address && *selection == Selection::default()
        });
        whole
            .map(|(_, entry)| (entry.name, entry.echo.clone()))
            .collect()
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

async fn watch<K>(api: Api<Lenient<K>>, selection: Selection, cache: Cache<K>, telemetry: Telemetry)
where
    K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
{
    let address = api.resource_url().to_owned();
    let mut events = pin!(events(api, selection));
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if let Some(event) = word(&event) {
                    let watch = &address;
                    telemetry.emit(&WatchTold { watch, event });
                }
                cache.take(event);
            }
            Err(error) => telemetry.emit(&WatchBroke {
                watch: &address,
                error: error.to_string(),
            }),
        }
    }
}

fn word<K>(event: &Event<K>) -> Option<&'static str> {
    match event {
        Event::Init => Some(WatchTold::LISTING),
        Event::InitApply(_) => Some("listed"),
        Event::InitDone => None,
        Event::Apply(_) => Some("applied"),
        Event::Delete(_) => Some("deleted"),
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
    planted!(AnyAge => return watcher(api, config.any_semantic()).backoff(Waits::default()));
    watcher(api, config).backoff(Waits::default())
}

/// How long a watch that broke off waits before it is opened again: as `client-go` does, but never
/// for long. Whoever is blind for a minute because the server was away for some seconds does more
/// harm than a request every few seconds.
#[derive(Default)]
pub(crate) struct Waits(DefaultBackoff);

const LONGEST: Duration = Duration::from_secs(5);

impl Iterator for Waits {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        planted!(WatchGivenUp => return Some(Duration::from_hours(1)));
        planted!(WatchAtOnce => return Some(Duration::ZERO));
        self.0.next().map(|wait| wait.min(LONGEST))
    }
}

impl Backoff for Waits {
    fn reset(&mut self) {
        self.0.reset();
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_broke_off_is_soon_opened_again_however_often_that_failed() {
        let waits: Vec<_> = Waits::default().take(20).collect();
        assert_eq!(waits.len(), 20, "it never gives up");
        assert!(waits[0] < Duration::from_secs(2), "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= LONGEST), "{waits:?}");
        assert_eq!(waits[19], LONGEST, "{waits:?}");
    }
}
