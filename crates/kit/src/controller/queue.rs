//! Which key is next. A value: it knows no clock and no task.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
};

use crate::{clock::Uptime, planted};

/// How much of a hurry there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Somebody changed something and may be waiting.
    Change,
    /// Nothing is known to have changed.
    Resync,
}

/// What is to be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next<K> {
    /// Work on this key, then say [`Queue::done`].
    Run(K),
    /// Nothing before this moment, unless something is added.
    Wait(Uptime),
    /// Nothing until something is added.
    Idle,
}

/// After so many keys in a hurry comes one that is not, so that a storm of changes does not keep
/// the rest from being looked at for ever.
const IN_A_ROW: u32 = 16;

/// Keys that want to be worked on.
#[derive(Debug, Clone)]
pub struct Queue<K> {
    keys: HashMap<K, Entry>,
    /// Keys that may run now, the first to come first within a priority.
    ready: BTreeMap<Place, K>,
    /// Keys that wait, by when.
    later: BTreeMap<(Uptime, u64), K>,
    running: usize,
    arrivals: u64,
    hurried: u32,
}

type Place = (Priority, u64);

#[derive(Debug, Clone, Copy)]
struct Entry {
    state: State,
    failures: u32,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Ready(Place),
    Later(Uptime, u64, Priority),
    /// Under way; and what was added since.
    Running(Option<(Uptime, Priority)>),
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self {
            keys: HashMap::new(),
            ready: BTreeMap::new(),
            later: BTreeMap::new(),
            running: 0,
            arrivals: 0,
            hurried: 0,
        }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Asks for `key` to be worked on at `at` or earlier. While it is worked on, the work after
    /// that is what is asked for.
    pub fn add(&mut self, key: K, priority: Priority, at: Uptime, now: Uptime) {
        let Some(entry) = self.keys.get(&key).copied() else {
            self.put(key, 0, priority, at, now);
            return;
        };
        let (at, priority) = match entry.state {
            State::Ready((former, _)) if former <= priority => return,
            State::Later(former, _, _) if former <= at && at > now => return,
            State::Ready(_) => (now, priority),
            State::Later(_, _, former) => (at, priority.min(former)),
            State::Running(former) => {
                planted!(NewsForgotten => return);
                let (earliest, hurry) = former.unwrap_or((at, priority));
                let since = Some((earliest.min(at), hurry.min(priority)));
                if let Some(entry) = self.keys.get_mut(&key) {
                    entry.state = State::Running(since);
                }
                return;
            }
        };
        self.take_out(entry.state);
        self.put(key, entry.failures, priority, at, now);
    }

    /// The key to work on now.
    pub fn next(&mut self, now: Uptime) -> Next<K> {
        self.release(now);
        let Some((place, key)) = self.first() else {
            let earliest = self.later.keys().next();
            return earliest.map_or(Next::Idle, |&(at, _)| Next::Wait(at));
        };
        self.ready.remove(&place);
        self.hurried = match place.0 {
            Priority::Change => self.hurried + 1,
            Priority::Resync => 0,
        };
        if let Some(entry) = self.keys.get_mut(&key) {
            entry.state = State::Running(None);
            self.running += 1;
        }
        Next::Run(key)
    }

    /// The work on `key` ended well; it is worked on again at `again`, or when it is added.
    pub fn done(&mut self, key: &K, again: Option<Uptime>, now: Uptime) {
        self.end(key, 0, again.map(|at| (at, Priority::Resync)), now);
    }

    /// The work on `key` failed, for so many times in a row now; `wait` says until when that keeps
    /// it from being tried again.
    pub fn failed(&mut self, key: &K, wait: impl FnOnce(u32) -> Uptime, now: Uptime) {
        let failures = self
            .keys
            .get(key)
            .map_or(0, |entry| entry.failures)
            .saturating_add(1);
        self.end(key, failures, Some((wait(failures), Priority::Resync)), now);
    }

    /// How many keys are worked on.
    pub fn running(&self) -> usize {
        self.running
    }

    /// How many keys wait, for their turn or for their time.
    pub fn waiting(&self) -> usize {
        self.ready.len() + self.later.len()
    }

    /// The keys that are worked on.
    pub fn running_keys(&self) -> impl Iterator<Item = &K> {
        let running = |entry: &Entry| matches!(entry.state, State::Running(_));
        let keys = self.keys.iter().filter(move |(_, entry)| running(entry));
        keys.map(|(key, _)| key)
    }

    /// The keys that wait.
    pub fn waiting_keys(&self) -> impl Iterator<Item = &K> {
        self.ready.values().chain(self.later.values())
    }

    /// The keys that failed last time, with how often in a row.
    pub fn failing(&self) -> impl Iterator<Item = (&K, u32)> {
        let keys = self.keys.iter().filter(|(_, entry)| entry.failures > 0);
        keys.map(|(key, entry)| (key, entry.failures))
    }

    fn end(&mut self, key: &K, failures: u32, again: Option<(Uptime, Priority)>, now: Uptime) {
        let Some(&Entry {
            state: State::Running(since),
            ..
        }) = self.keys.get(key)
        else {
            return;
        };
        self.keys.remove(key);
        self.running -= 1;
        // What was said meanwhile is not put off by a failure: it may be what mends it.
        let asked = [since, again].into_iter().flatten();
        if let Some((at, priority)) = asked.min_by_key(|&(at, _)| at) {
            self.put(key.clone(), failures, priority, at, now);
        }
    }

    fn put(&mut self, key: K, failures: u32, priority: Priority, at: Uptime, now: Uptime) {
        self.arrivals += 1;
        let state = if at <= now {
            self.ready.insert((priority, self.arrivals), key.clone());
            State::Ready((priority, self.arrivals))
        } else {
            self.later.insert((at, self.arrivals), key.clone());
            State::Later(at, self.arrivals, priority)
        };
        self.keys.insert(key, Entry { state, failures });
    }

    fn take_out(&mut self, state: State) {
        match state {
            State::Ready(place) => drop(self.ready.remove(&place)),
            State::Later(at, arrival, _) => drop(self.later.remove(&(at, arrival))),
            State::Running(_) => {}
        }
    }

    /// Those whose time has come wait for their turn.
    fn release(&mut self, now: Uptime) {
        while let Some(first) = self.later.first_entry() {
            if first.key().0 > now {
                return;
            }
            let ((_, arrival), key) = first.remove_entry();
            let Some(entry) = self.keys.get_mut(&key) else {
                continue;
            };
            if let State::Later(_, _, priority) = entry.state {
                entry.state = State::Ready((priority, arrival));
                self.ready.insert((priority, arrival), key);
            }
        }
    }

    fn first(&self) -> Option<(Place, K)> {
        let patient = (Priority::Resync, 0)..;
        let first = if self.hurried >= IN_A_ROW {
            self.ready
                .range(patient)
                .next()
                .or_else(|| self.ready.iter().next())
        } else {
            self.ready.iter().next()
        };
        first.map(|(place, key)| (*place, key.clone()))
    }
}
