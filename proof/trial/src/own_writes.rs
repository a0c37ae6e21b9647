//! The writes of one process lifetime, by the reconcile that made them.
//!
//! O12: no reconcile starts from a view older than the last writes for its key. The writes and
//! their versions are those that the server answered, as the injector sees them; the view is what
//! the caches show when a reconcile starts. Exempt are writes without an answer, whose version the
//! process does not know, and writes to kinds that it does not watch.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, OnceLock},
};

use neap_kit::{
    key::Key,
    own_writes::{ObservedWatches, ReconcileObserver, ReconcileStart, WatchPosition},
    watch::Watches,
};
use parking_lot::Mutex;
use serde::Deserialize;

use crate::{
    fault_injector::Call,
    judge::{Oracle, Violation},
    plan::Verb,
};

/// The writes of one process lifetime.
#[derive(Default)]
pub(crate) struct OwnWrites {
    watches: OnceLock<Watches>,
    state: Mutex<WriteLog>,
}

#[derive(Default)]
struct WriteLog {
    /// The controller and key of each reconcile, by its number.
    reconciles: Vec<ReconcileKey>,
    writes: HashMap<ReconcileKey, Vec<AnsweredWrite>>,
    /// Reconciles that started too early.
    violations: Vec<Violation>,
}

/// Watch positions by the type that the watch decodes to.
type Positions = BTreeMap<&'static str, WatchPosition>;

/// A controller and a key.
type ReconcileKey = Arc<str>;

struct AnsweredWrite {
    kind: String,
    /// The path of all objects of the kind, and the path of those in the namespace.
    addresses: [String; 2],
    expected: ExpectedWrite,
}

enum ExpectedWrite {
    /// The version, and the position of each watch before the write, for both paths.
    Version(u64, [Positions; 2]),
    Gone(Key, String),
}

impl OwnWrites {
    /// Sets the watches that the process reads from.
    pub(crate) fn set_watches(&self, watches: &Watches) {
        let _ = self.watches.set(watches.clone());
    }

    /// Reconciles that started too early.
    pub(crate) fn violations(&self) -> Vec<Violation> {
        std::mem::take(&mut self.state.lock().violations)
    }

    /// The lines of the process's metrics.
    pub(crate) fn metrics_lines(&self) -> Vec<String> {
        let watches = self.watches.get().into_iter();
        let text = watches.map(|watches| watches.process().metrics());
        text.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }

    /// Records the answer to a write.
    pub(crate) fn record_response(
        &self,
        number: u64,
        call: &Call,
        path: &str,
        sent: &[u8],
        body: &[u8],
    ) {
        let Some(watches) = self.watches.get() else {
            return;
        };
        let addresses = addresses(path);
        let expected = if call.verb == Verb::Delete {
            let uid = DeleteOptions::uid(sent);
            uid.map(|uid| ExpectedWrite::Gone(Key::new(&call.namespace, &call.name), uid))
        } else {
            version(body).map(|version| {
                let observed: &dyn ObservedWatches = watches;
                let positions = [0, 1].map(|at: usize| observed.positions(&addresses[at]));
                ExpectedWrite::Version(version, positions)
            })
        };
        let mut state = self.state.lock();
        let key = usize::try_from(number)
            .ok()
            .and_then(|number| state.reconciles.get(number).cloned());
        if let (Some(expected), Some(key)) = (expected, key) {
            state.writes.entry(key).or_default().push(AnsweredWrite {
                kind: call.resource().to_owned(),
                addresses,
                expected,
            });
        }
    }
}

impl AnsweredWrite {
    /// What `watches` do not show yet of this write.
    fn missing(&self, watches: &dyn ObservedWatches) -> Option<String> {
        let kind = &self.kind;
        match &self.expected {
            ExpectedWrite::Version(version, before) => {
                let mut both = self.addresses.iter().zip(before);
                let behind = both.any(|(at, before)| {
                    let now = watches.positions(at);
                    now.iter()
                        .any(|(name, now)| is_behind(*version, before.get(name), now))
                });
                behind.then(|| format!("{kind} did not show version {version}"))
            }
            ExpectedWrite::Gone(key, uid) => {
                let mut at = self.addresses.iter();
                let holds = at.any(|at| watches.contains(at, key, uid));
                holds.then(|| format!("{kind} still showed {key}"))
            }
        }
    }
}

impl ReconcileObserver for OwnWrites {
    fn on_start(&self, start: &ReconcileStart<'_>) -> u64 {
        let ReconcileStart {
            controller,
            key,
            watches,
        } = start;
        let reconciled: ReconcileKey = format!("{controller} {key:?}").into();
        let mut state = self.state.lock();
        let writes = state.writes.remove(&reconciled).unwrap_or_default();
        for write in writes {
            if let Some(missing) = write.missing(*watches) {
                let text = format!(
                    "{reconciled} was reconciled again while the watch of {missing}, which it had written itself"
                );
                let violation = Violation::new(Oracle::ReadYourWrites, &write.kind, text);
                state.violations.push(violation);
            }
        }
        state.reconciles.push(reconciled);
        state.reconciles.len() as u64 - 1
    }
}

/// Whether a watch has neither reached `version` nor been relisted since it stood at `before`. A
/// watch that did not exist then had started no list.
fn is_behind(version: u64, before: Option<&WatchPosition>, now: &WatchPosition) -> bool {
    let reconciles = before.map_or(0, |before| before.listings_begun);
    let listed = now
        .listing_completed
        .is_some_and(|complete| complete > reconciles);
    now.reached < version && !listed
}

/// The path of all objects of the kind, and the path of those in the namespace, from an object's
/// path.
fn addresses(path: &str) -> [String; 2] {
    let mut words: Vec<_> = path.split('/').filter(|word| !word.is_empty()).collect();
    let root = if words.first() == Some(&"apis") { 3 } else { 2 };
    let spaced = words.get(root) == Some(&"namespaces") && words.len() > root + 2;
    words.truncate(if spaced { root + 3 } else { root + 1 });
    let within = format!("/{}", words.join("/"));
    if spaced {
        words.drain(root..root + 2);
    }
    let all = format!("/{}", words.join("/"));
    // A cluster-scoped object has one path, and no watch uses the empty one.
    [all, if spaced { within } else { String::new() }]
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct VersionedObject {
    metadata: VersionMetadata,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct VersionMetadata {
    resource_version: String,
}

fn version(body: &[u8]) -> Option<u64> {
    let body: VersionedObject = serde_json::from_slice(body).ok()?;
    body.metadata.resource_version.parse().ok()
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct DeleteOptions {
    preconditions: Preconditions,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Preconditions {
    uid: Option<String>,
}

impl DeleteOptions {
    fn uid(sent: &[u8]) -> Option<String> {
        let removal: Self = serde_json::from_slice(sent).ok()?;
        removal.preconditions.uid
    }
}

impl fmt::Debug for OwnWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{WatchPosition, addresses, is_behind};

    #[test]
    fn a_watch_is_behind_until_it_shows_the_version_or_everything_anew() {
        let position = |reached, reconciles, complete| WatchPosition {
            reached,
            listings_begun: reconciles,
            listing_completed: complete,
        };
        let before = position(3, 1, Some(1));
        assert!(is_behind(7, Some(&before), &before));
        assert!(!is_behind(7, Some(&before), &position(7, 1, Some(1))));
        assert!(is_behind(7, Some(&before), &position(6, 2, Some(1))));
        assert!(!is_behind(7, Some(&before), &position(6, 2, Some(2))));
        assert!(
            is_behind(7, None, &position(6, 1, None)),
            "it has just begun"
        );
        assert!(!is_behind(7, None, &position(6, 1, Some(1))));
    }

    #[test]
    fn a_path_leads_to_those_that_are_watched() {
        for (path, all, within) in [
            (
                "/api/v1/namespaces/shop/pods/a/status",
                "/api/v1/pods",
                "/api/v1/namespaces/shop/pods",
            ),
            (
                "/apis/apps/v1/namespaces/shop/replicasets",
                "/apis/apps/v1/replicasets",
                "/apis/apps/v1/namespaces/shop/replicasets",
            ),
            ("/api/v1/nodes/one", "/api/v1/nodes", ""),
            ("/api/v1/namespaces/shop", "/api/v1/namespaces", ""),
        ] {
            assert_eq!(addresses(path), [all, within], "{path}");
        }
    }
}
