//! What one life of an actor wrote, by the reconcile that wrote it.
//!
//! O12: no reconcile begins on a view older than the last writes for its key. The writes and their
//! versions are those that the server answered, seen at the seam; how far the view has come is what
//! the caches say in the moment a reconcile begins. A write that was not answered is unknown to the
//! actor, so nobody can hold it against it; one of a kind that it does not watch has no view.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, OnceLock},
};

use neap_kit::{
    echo::{Beginning, Echoes, Observer, Stand},
    key::Key,
    watch::Watches,
};
use parking_lot::Mutex;
use serde::Deserialize;

use crate::{
    judge::{Oracle, Violation},
    plan::Verb,
    seam::Call,
};

/// The writes of one life.
#[derive(Default)]
pub(crate) struct Own {
    watches: OnceLock<Watches>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whose reconcile a number means.
    begun: Vec<Whose>,
    written: HashMap<Whose, Vec<Written>>,
    /// What began too early.
    early: Vec<Violation>,
}

/// Watches by what they decode to.
type Stands = BTreeMap<&'static str, Stand>;

/// A controller and its key.
type Whose = Arc<str>;

struct Written {
    kind: String,
    /// The address of all objects of the kind, and of those of the namespace.
    addresses: [String; 2],
    sign: Sign,
}

enum Sign {
    /// With how far each of the watches had come, for both addresses.
    Version(u64, [Stands; 2]),
    Gone(Key, String),
}

impl Own {
    /// The actor reads from these.
    pub(crate) fn reads(&self, watches: &Watches) {
        let _ = self.watches.set(watches.clone());
    }

    /// What began too early.
    pub(crate) fn early(&self) -> Vec<Violation> {
        std::mem::take(&mut self.state.lock().early)
    }

    /// What it counted, as whoever asks for it is told.
    pub(crate) fn numbers(&self) -> Vec<String> {
        let watches = self.watches.get().into_iter();
        let text = watches.map(|watches| watches.process().metrics());
        text.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }

    /// The actor is told that its write was done.
    pub(crate) fn answered(&self, number: u64, call: &Call, path: &str, sent: &[u8], told: &[u8]) {
        let Some(watches) = self.watches.get() else {
            return;
        };
        let addresses = addresses(path);
        let sign = if call.verb == Verb::Delete {
            let uid = Removal::uid(sent);
            uid.map(|uid| Sign::Gone(Key::new(&call.namespace, &call.name), uid))
        } else {
            version(told).map(|version| {
                let echoes: &dyn Echoes = watches;
                let stands = [0, 1].map(|at: usize| echoes.stands(&addresses[at]));
                Sign::Version(version, stands)
            })
        };
        let mut state = self.state.lock();
        let whose = usize::try_from(number)
            .ok()
            .and_then(|number| state.begun.get(number).cloned());
        if let (Some(sign), Some(whose)) = (sign, whose) {
            state.written.entry(whose).or_default().push(Written {
                kind: call.resource().to_owned(),
                addresses,
                sign,
            });
        }
    }
}

impl Written {
    /// What `watches` do not show yet, if so.
    fn missed(&self, watches: &dyn Echoes) -> Option<String> {
        let kind = &self.kind;
        match &self.sign {
            Sign::Version(version, before) => {
                let mut both = self.addresses.iter().zip(before);
                let behind = both.any(|(at, before)| {
                    let now = watches.stands(at);
                    now.iter()
                        .any(|(name, now)| is_behind(*version, before.get(name), now))
                });
                behind.then(|| format!("{kind} did not show version {version}"))
            }
            Sign::Gone(key, uid) => {
                let mut at = self.addresses.iter();
                let holds = at.any(|at| watches.holds(at, key, uid));
                holds.then(|| format!("{kind} still showed {key}"))
            }
        }
    }
}

impl Observer for Own {
    fn begins(&self, beginning: &Beginning<'_>) -> u64 {
        let Beginning {
            controller,
            key,
            watches,
        } = beginning;
        let whose: Whose = format!("{controller} {key:?}").into();
        let mut state = self.state.lock();
        let written = state.written.remove(&whose).unwrap_or_default();
        for written in written {
            if let Some(missed) = written.missed(*watches) {
                let text = format!(
                    "{whose} was looked at again while the watch of {missed}, which it had written itself"
                );
                let early = Violation::new(Oracle::ReadYourWrites, &written.kind, text);
                state.early.push(early);
            }
        }
        state.begun.push(whose);
        state.begun.len() as u64 - 1
    }
}

/// Whether a watch has neither come to `version` nor been listed anew since it stood as `before`. One
/// that was not there then has begun no listing.
fn is_behind(version: u64, before: Option<&Stand>, now: &Stand) -> bool {
    let begun = before.map_or(0, |before| before.begun);
    let listed = now.complete.is_some_and(|complete| complete > begun);
    now.reached < version && !listed
}

/// Of a path of an object, those of all of its kind and of those in its namespace.
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
    // One of no namespace has one address, and nobody watches under the other.
    [all, if spaced { within } else { String::new() }]
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Told {
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    resource_version: String,
}

fn version(told: &[u8]) -> Option<u64> {
    let told: Told = serde_json::from_slice(told).ok()?;
    told.metadata.resource_version.parse().ok()
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Removal {
    preconditions: Preconditions,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Preconditions {
    uid: Option<String>,
}

impl Removal {
    fn uid(sent: &[u8]) -> Option<String> {
        let removal: Self = serde_json::from_slice(sent).ok()?;
        removal.preconditions.uid
    }
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Stand, addresses, is_behind};

    #[test]
    fn a_watch_is_behind_until_it_shows_the_version_or_everything_anew() {
        let stand = |reached, begun, complete| Stand {
            reached,
            begun,
            complete,
        };
        let before = stand(3, 1, Some(1));
        assert!(is_behind(7, Some(&before), &before));
        assert!(!is_behind(7, Some(&before), &stand(7, 1, Some(1))));
        assert!(is_behind(7, Some(&before), &stand(6, 2, Some(1))));
        assert!(!is_behind(7, Some(&before), &stand(6, 2, Some(2))));
        assert!(is_behind(7, None, &stand(6, 1, None)), "it has just begun");
        assert!(!is_behind(7, None, &stand(6, 1, Some(1))));
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
