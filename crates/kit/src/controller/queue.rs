//! The work queue of a controller, as a value: it has no clock and no tasks.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
};

use crate::{clock::Uptime, planted};

/// How urgent a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Something changed, and a user may be waiting for it.
    Change,
    /// Nothing is known to have changed.
    Resync,
}

/// What the controller does now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextKey<K> {
    /// Reconcile this key, then call [`Queue::done`] or [`Queue::failed`].
    Run(K),
    /// Nothing before this moment, unless a key is added.
    Wait(Uptime),
    /// Nothing until a key is added.
    Idle,
}

/// After this number of consecutive changes one resync runs, so that a flood of changes does not
/// starve the other keys.
const MAX_CONSECUTIVE_CHANGES: u32 = 16;

/// Keys to reconcile.
#[derive(Debug, Clone)]
pub struct Queue<K> {
    keys: HashMap<K, QueuedKey>,
    /// Keys that may run now, first in first out within a priority.
    ready: BTreeMap<ReadyPosition, K>,
    /// Keys that are due later, by time and arrival.
    delayed: BTreeMap<(Uptime, u64), K>,
    running: usize,
    arrivals: u64,
    consecutive_changes: u32,
}

/// Priority, then number of arrival.
type ReadyPosition = (Priority, u64);

#[derive(Debug, Clone, Copy)]
struct QueuedKey {
    state: KeyState,
    failures: u32,
}

#[derive(Debug, Clone, Copy)]
enum KeyState {
    Ready(ReadyPosition),
    Delayed(Uptime, u64, Priority),
    /// Its reconcile runs; with the time and priority of what was added since it started.
    Running(Option<(Uptime, Priority)>),
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self {
            keys: HashMap::new(),
            ready: BTreeMap::new(),
            delayed: BTreeMap::new(),
            running: 0,
            arrivals: 0,
            consecutive_changes: 0,
        }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Schedules a reconcile of `key` at `at` or earlier. If one is running, another one follows.
    pub fn add(&mut self, key: K, priority: Priority, at: Uptime, now: Uptime) {
        let Some(queued) = self.keys.get(&key).copied() else {
            self.insert(key, 0, priority, at, now);
            return;
        };
        let (at, priority) = match queued.state {
            KeyState::Ready((current, _)) if current <= priority => return,
            KeyState::Delayed(due, _, _) if due <= at && at > now => return,
            KeyState::Ready(_) => (now, priority),
            KeyState::Delayed(_, _, current) => (at, priority.min(current)),
            KeyState::Running(since) => {
                planted!(NewsForgotten => return);
                let (earliest, urgency) = since.unwrap_or((at, priority));
                let since = Some((earliest.min(at), urgency.min(priority)));
                if let Some(queued) = self.keys.get_mut(&key) {
                    queued.state = KeyState::Running(since);
                }
                return;
            }
        };
        self.unschedule(queued.state);
        self.insert(key, queued.failures, priority, at, now);
    }

    /// Takes the key to reconcile now.
    pub fn next(&mut self, now: Uptime) -> NextKey<K> {
        self.release(now);
        let Some((position, key)) = self.first() else {
            let earliest = self.delayed.keys().next();
            return earliest.map_or(NextKey::Idle, |&(at, _)| NextKey::Wait(at));
        };
        self.ready.remove(&position);
        self.consecutive_changes = match position.0 {
            Priority::Change => self.consecutive_changes + 1,
            Priority::Resync => 0,
        };
        if let Some(queued) = self.keys.get_mut(&key) {
            queued.state = KeyState::Running(None);
            self.running += 1;
        }
        NextKey::Run(key)
    }

    /// Ends the reconcile of `key` as successful; the next one is at `requeue_at`, or when the key is
    /// added.
    pub fn done(&mut self, key: &K, requeue_at: Option<Uptime>, now: Uptime) {
        let requeue = requeue_at.map(|at| (at, Priority::Resync));
        self.end(key, 0, requeue, now);
    }

    /// Ends the reconcile of `key` as failed. `retry_at` returns the time of the next attempt for the
    /// number of consecutive failures.
    pub fn failed(&mut self, key: &K, retry_at: impl FnOnce(u32) -> Uptime, now: Uptime) {
        let failures = self
            .keys
            .get(key)
            .map_or(0, |queued| queued.failures)
            .saturating_add(1);
        let retry = (retry_at(failures), Priority::Resync);
        self.end(key, failures, Some(retry), now);
    }

    /// How often the key has failed since it last succeeded.
    pub fn failures(&self, key: &K) -> u32 {
        self.keys.get(key).map_or(0, |queued| queued.failures)
    }

    /// The number of keys that are being reconciled.
    pub fn running(&self) -> usize {
        self.running
    }

    /// The number of keys that are ready or delayed.
    pub fn waiting(&self) -> usize {
        self.ready.len() + self.delayed.len()
    }

    /// The keys that are being reconciled.
    pub fn running_keys(&self) -> impl Iterator<Item = &K> {
        let running = |queued: &QueuedKey| matches!(queued.state, KeyState::Running(_));
        let keys = self.keys.iter().filter(move |(_, queued)| running(queued));
        keys.map(|(key, _)| key)
    }

    /// The keys that are ready or delayed.
    pub fn waiting_keys(&self) -> impl Iterator<Item = &K> {
        self.ready.values().chain(self.delayed.values())
    }

    /// The keys whose last reconcile failed, each with its number of consecutive failures.
    pub fn failing(&self) -> impl Iterator<Item = (&K, u32)> {
        let keys = self.keys.iter().filter(|(_, queued)| queued.failures > 0);
        keys.map(|(key, queued)| (key, queued.failures))
    }

    fn end(&mut self, key: &K, failures: u32, requeue: Option<(Uptime, Priority)>, now: Uptime) {
        let Some(&QueuedKey {
            state: KeyState::Running(since),
            ..
        }) = self.keys.get(key)
        else {
            return;
        };
        self.keys.remove(key);
        self.running -= 1;
        // A failure does not delay what was added meanwhile: that change may fix it.
        let due = [since, requeue].into_iter().flatten();
        if let Some((at, priority)) = due.min_by_key(|&(at, _)| at) {
            self.insert(key.clone(), failures, priority, at, now);
        }
    }

    fn insert(&mut self, key: K, failures: u32, priority: Priority, at: Uptime, now: Uptime) {
        self.arrivals += 1;
        let state = if at <= now {
            self.ready.insert((priority, self.arrivals), key.clone());
            KeyState::Ready((priority, self.arrivals))
        } else {
            self.delayed.insert((at, self.arrivals), key.clone());
            KeyState::Delayed(at, self.arrivals, priority)
        };
        self.keys.insert(key, QueuedKey { state, failures });
    }

    fn unschedule(&mut self, state: KeyState) {
        match state {
            KeyState::Ready(position) => drop(self.ready.remove(&position)),
            KeyState::Delayed(at, arrival, _) => drop(self.delayed.remove(&(at, arrival))),
            KeyState::Running(_) => {}
        }
    }

    /// Makes delayed keys ready whose time has come.
    fn release(&mut self, now: Uptime) {
        while let Some(first) = self.delayed.first_entry() {
            if first.key().0 > now {
                return;
            }
            let ((_, arrival), key) = first.remove_entry();
            let Some(queued) = self.keys.get_mut(&key) else {
                continue;
            };
            if let KeyState::Delayed(_, _, priority) = queued.state {
                queued.state = KeyState::Ready((priority, arrival));
                self.ready.insert((priority, arrival), key);
            }
        }
    }

    fn first(&self) -> Option<(ReadyPosition, K)> {
        let resyncs = (Priority::Resync, 0)..;
        let first = if self.consecutive_changes >= MAX_CONSECUTIVE_CHANGES {
            self.ready
                .range(resyncs)
                .next()
                .or_else(|| self.ready.iter().next())
        } else {
            self.ready.iter().next()
        };
        first.map(|(position, key)| (*position, key.clone()))
    }
}
