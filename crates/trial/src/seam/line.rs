//! What has happened to one life of an actor.

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

use super::{Answer, Call, answer};
use crate::{
    own::Own,
    plan::{Fault, Verb},
    scene::Open,
};

/// How an actor that died starts again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Restart {
    /// What it reads is so many changes behind,
    pub(crate) events: usize,
    /// if it is of these kinds; of any if none is named.
    pub(crate) kinds: Vec<String>,
}

pub(crate) struct Line {
    actor: Arc<str>,
    clock: Clock,
    view: View,
    death: mpsc::Sender<Restart>,
    open: Open,
    lagged: Notify,
    own: Arc<Own>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    dead: bool,
    paused: Option<Uptime>,
    late: Option<Late>,
    /// Writes to these objects are refused so many times more.
    conflicts: HashMap<(String, String, String), u32>,
    /// Watches of these kinds have lost their place.
    lost: HashSet<String>,
    /// Watches of these kinds cannot be opened until then, and have lost their place after it.
    shut: HashMap<String, Uptime>,
}

struct Late {
    kinds: Vec<String>,
    until: Uptime,
}

impl Line {
    pub(crate) fn new(
        actor: Arc<str>,
        clock: Clock,
        view: View,
        death: mpsc::Sender<Restart>,
        open: Open,
        own: Arc<Own>,
    ) -> Self {
        Self {
            actor,
            clock,
            view,
            death,
            open,
            lagged: Notify::new(),
            own,
            state: Mutex::default(),
        }
    }

    /// What it wrote.
    pub(crate) fn own(&self) -> &Arc<Own> {
        &self.own
    }

    pub(crate) fn actor(&self) -> &str {
        &self.actor
    }

    /// Resolves when the actor may go on: at once, after its pause, or never if it is dead.
    pub(crate) async fn go_on(&self) {
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
            // There is room for one, and one is enough.
            let _ = self.death.try_send(restart);
        }
    }

    pub(crate) async fn pause(&self, time: Duration) {
        let until = self.clock.uptime() + time;
        self.open.until(until);
        self.state.lock().paused = Some(until);
        self.go_on().await;
    }

    /// From here on what is read of `kinds` is `events` changes behind, for a while.
    pub(crate) fn lag(&self, events: usize, kinds: Vec<String>, time: Duration) {
        let until = self.clock.uptime() + time;
        self.open.until(until);
        self.state.lock().late = Some(Late { kinds, until });
        self.view.set_lag(events);
        self.lagged.notify_one();
    }

    /// Shows everything again whenever a lag has lasted its time.
    pub(crate) async fn catch_up_in_time(&self) {
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

    pub(super) fn conflict(&self, call: &Call, times: u32) {
        self.state.lock().conflicts.insert(place(call), times);
    }

    pub(super) fn conflicts(&self, call: &Call) -> Option<Answer> {
        if !call.verb.writes() {
            return None;
        }
        let mut state = self.state.lock();
        let left = state.conflicts.get_mut(&place(call))?;
        if *left == 0 {
            return None;
        }
        *left -= 1;
        Some(answer::conflict())
    }

    /// The watch of this kind cannot go on where it was.
    pub(super) fn lose(&self, kind: &str) {
        self.state.lock().lost.insert(kind.to_owned());
    }

    /// Nor can it be opened for a while.
    pub(super) fn shut(&self, kind: &str, time: Duration) {
        let until = self.clock.uptime() + time;
        self.open.until(until);
        let mut state = self.state.lock();
        state.lost.insert(kind.to_owned());
        state.shut.insert(kind.to_owned(), until);
    }

    /// What a watch that is opened is told, if it cannot be.
    pub(super) fn reopened(&self, call: &Call) -> Option<Answer> {
        let mut state = self.state.lock();
        if let Some(until) = state.shut.get(&call.kind) {
            if *until > self.clock.uptime() {
                let fault = Fault {
                    code: 500,
                    retry_after: None,
                };
                return Some(answer::refusal(&fault, call));
            }
            state.shut.remove(&call.kind);
        }
        state.lost.remove(&call.kind).then(answer::gone)
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

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("actor", &self.actor)
            .finish_non_exhaustive()
    }
}
