//! The fault state of one process lifetime.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    future::pending,
    sync::Arc,
    time::Duration,
};

use neap_kit::clock::{Clock, Uptime};
use neap_pocket::store::View;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::{Call, ServerResponse, responses};
use crate::{
    own_writes::OwnWrites,
    plan::{Fault, Verb},
    run_state::ActiveFaults,
};

/// How a crashed process restarts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Restart {
    /// Number of changes by which its reads are behind.
    pub(crate) events: usize,
    /// The kinds concerned; all if empty.
    pub(crate) kinds: Vec<String>,
}

pub(crate) struct Connection {
    actor: Arc<str>,
    clock: Clock,
    view: View,
    crashed: mpsc::Sender<Restart>,
    active_faults: ActiveFaults,
    lagged: Notify,
    own_writes: Arc<OwnWrites>,
    state: Mutex<ConnectionState>,
}

#[derive(Default)]
struct ConnectionState {
    dead: bool,
    paused: Option<Uptime>,
    late: Option<Lag>,
    /// How many more writes to an object fail with a conflict.
    conflicts: HashMap<(String, String, String), u32>,
    /// Kinds whose watches have lost their version.
    expired: HashSet<String>,
    /// Kinds whose watches cannot be opened until this time, and have lost their version after it.
    block_watch: HashMap<String, Uptime>,
}

struct Lag {
    kinds: Vec<String>,
    until: Uptime,
}

impl Connection {
    pub(crate) fn new(
        actor: Arc<str>,
        clock: Clock,
        view: View,
        crashed: mpsc::Sender<Restart>,
        active_faults: ActiveFaults,
        own_writes: Arc<OwnWrites>,
    ) -> Self {
        Self {
            actor,
            clock,
            view,
            crashed,
            active_faults,
            lagged: Notify::new(),
            own_writes,
            state: Mutex::default(),
        }
    }

    pub(crate) fn own_writes(&self) -> &Arc<OwnWrites> {
        &self.own_writes
    }

    pub(crate) fn actor(&self) -> &str {
        &self.actor
    }

    /// Resolves when the process may go on: at once, after its pause, or never if it is dead.
    pub(crate) async fn wait_until_runnable(&self) {
        loop {
            let until = {
                let mut state = self.state.lock();
                if state.dead {
                    None
                } else {
                    match state.paused {
                        None => return,
                        Some(until) if until <= self.clock.uptime() => {
                            state.paused = None;
                            return;
                        }
                        until => until,
                    }
                }
            };
            match until {
                Some(until) => self.clock.sleep_until(until).await,
                None => pending().await,
            }
        }
    }

    pub(crate) fn crash(&self, restart: Restart) {
        let first = !std::mem::replace(&mut self.state.lock().dead, true);
        if first {
            // The channel has room for one message, and one is enough.
            let _ = self.crashed.try_send(restart);
        }
    }

    pub(crate) async fn pause(&self, time: Duration) {
        let until = self.clock.uptime() + time;
        self.active_faults.until(until);
        self.state.lock().paused = Some(until);
        self.wait_until_runnable().await;
    }

    /// Lets reads of `kinds` be `events` changes behind for a while.
    pub(crate) fn lag(&self, events: usize, kinds: Vec<String>, time: Duration) {
        let until = self.clock.uptime() + time;
        self.active_faults.until(until);
        self.state.lock().late = Some(Lag { kinds, until });
        self.view.set_lag(events);
        self.lagged.notify_one();
    }

    /// Ends each lag when its time has passed.
    pub(crate) async fn end_lags(&self) {
        loop {
            let until = self.state.lock().late.as_ref().map(|late| late.until);
            match until {
                None => self.lagged.notified().await,
                Some(until) if until > self.clock.uptime() => self.clock.sleep_until(until).await,
                Some(_) => {
                    self.state.lock().late = None;
                    self.view.set_lag(0);
                }
            }
        }
    }

    pub(super) fn is_late(&self, call: &Call) -> bool {
        let state = self.state.lock();
        let late = state.late.as_ref().is_some_and(|late| {
            late.kinds.is_empty() || late.kinds.iter().any(|kind| kind == call.resource())
        });
        late && (call.verb == Verb::Watch || (call.any_age && !call.verb.writes()))
    }

    pub(super) fn add_conflicts(&self, call: &Call, times: u32) {
        self.state.lock().conflicts.insert(place(call), times);
    }

    pub(super) fn next_conflict(&self, call: &Call) -> Option<ServerResponse> {
        if !call.verb.writes() {
            return None;
        }
        let mut state = self.state.lock();
        let left = state.conflicts.get_mut(&place(call))?;
        if *left == 0 {
            return None;
        }
        *left -= 1;
        Some(responses::conflict())
    }

    /// Makes the next watch of this kind fail with an expired version.
    pub(super) fn expire_watch(&self, kind: &str) {
        self.state.lock().expired.insert(kind.to_owned());
    }

    /// Like [`expire_watch`](Self::lose), and refuses to open the watch for a while.
    pub(super) fn block_watch(&self, kind: &str, time: Duration) {
        let until = self.clock.uptime() + time;
        self.active_faults.until(until);
        let mut state = self.state.lock();
        state.expired.insert(kind.to_owned());
        state.block_watch.insert(kind.to_owned(), until);
    }

    /// The refusal for a watch that cannot be opened now.
    pub(super) fn refuse_watch(&self, call: &Call) -> Option<ServerResponse> {
        let mut state = self.state.lock();
        if let Some(until) = state.block_watch.get(&call.kind) {
            if *until > self.clock.uptime() {
                let fault = Fault {
                    code: 500,
                    retry_after: None,
                };
                return Some(responses::refusal(&fault, call));
            }
            state.block_watch.remove(&call.kind);
        }
        state.expired.remove(&call.kind).then(responses::gone)
    }
}

fn place(call: &Call) -> (String, String, String) {
    let Call {
        kind,
        namespace,
        name,
        ..
    } = call.clone();
    (kind, namespace, name)
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("actor", &self.actor)
            .finish_non_exhaustive()
    }
}
