//! What can be said of a process while it runs.

use std::{collections::BTreeMap, fmt, sync::Arc};

use parking_lot::RwLock;
use serde_json::{Value, json};

use super::{Service, service::Readiness};
use crate::{
    clock::{Clock, Uptime},
    lease::Leadership,
    process::Process,
    site::Site,
    watch::{WatchState, Watches},
};

/// Where a service stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It was added and has not begun.
    Waiting,
    /// It runs.
    Running,
    /// It returned.
    Ended,
    /// It panicked, saying this.
    Panicked(String),
}

impl State {
    fn words(&self) -> String {
        match self {
            Self::Waiting => "waiting".to_owned(),
            Self::Running => "running".to_owned(),
            Self::Ended => "ended".to_owned(),
            Self::Panicked(message) => format!("panicked: {message}"),
        }
    }
}

/// Where the process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Starting,
    Running,
    Stopping,
}

/// Answers for the whole process. Cheap to copy.
#[derive(Clone)]
pub struct Health {
    watches: Watches,
    leadership: Leadership,
    pub(super) clock: Clock,
    shared: Arc<RwLock<Shared>>,
}

struct Shared {
    phase: Phase,
    services: BTreeMap<&'static str, Known>,
}

struct Known {
    state: State,
    since: Uptime,
    readiness: Option<Readiness>,
}

impl Health {
    pub(super) fn new(site: &Site) -> Self {
        let shared = Shared {
            phase: Phase::Starting,
            services: BTreeMap::new(),
        };
        Self {
            watches: site.watches.clone(),
            leadership: site.leadership.clone(),
            clock: site.clock,
            shared: Arc::new(RwLock::new(shared)),
        }
    }

    pub(super) fn expect(&self, service: &Service) {
        let known = Known {
            state: State::Waiting,
            since: self.clock.uptime(),
            readiness: service.readiness.clone(),
        };
        self.shared.write().services.insert(service.name, known);
    }

    pub(super) fn note(&self, name: &'static str, state: State) {
        let since = self.clock.uptime();
        if let Some(known) = self.shared.write().services.get_mut(name) {
            known.state = state;
            known.since = since;
        }
    }

    pub(super) fn started(&self) {
        self.shared.write().phase = Phase::Running;
    }

    pub(super) fn stopping(&self) {
        self.shared.write().phase = Phase::Stopping;
    }

    /// What the process does not do that it should; empty while it is well.
    pub fn ills(&self) -> Vec<String> {
        let shared = self.shared.read();
        let down = |known: &Known| matches!(known.state, State::Ended | State::Panicked(_));
        let ill = shared.services.iter().filter(|(_, known)| down(known));
        ill.map(|(name, known)| format!("the service {name} {}", known.state.words()))
            .collect()
    }

    /// What must happen before the process is ready, in words; empty once it is.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let services: Vec<_> = {
            let shared = self.shared.read();
            match shared.phase {
                Phase::Starting => missing.push("the services have not been started".to_owned()),
                Phase::Running => {}
                Phase::Stopping => missing.push("the process is stopping".to_owned()),
            }
            let checks = shared.services.iter();
            checks
                .filter_map(|(name, known)| Some((*name, known.readiness.clone()?)))
                .collect()
        };
        let unsynced = self.watches.unsynced();
        missing.extend(
            unsynced
                .iter()
                .map(|address| format!("the watch of {address} has not listed yet")),
        );
        let waiting = services
            .into_iter()
            .filter_map(|(name, check)| check().map(|what| format!("{name}: {what}")));
        missing.extend(waiting);
        missing.extend(self.ills());
        missing
    }

    /// Everything that is known, for people who look for a cause.
    pub fn state(&self) -> Value {
        let missing = self.missing();
        json!({
            "time": self.clock.now(),
            "uptimeSeconds": self.clock.uptime().as_secs(),
            "ready": missing.is_empty(),
            "missing": missing,
            "leadership": self.leading(),
            "services": self.services(),
            "watches": self.watches.states().iter().map(watch).collect::<Vec<_>>(),
            "queues": self.process().queues(),
        })
    }

    /// What the process counts.
    pub(super) fn process(&self) -> &Process {
        self.watches.process()
    }

    fn leading(&self) -> Value {
        match self.leadership.check() {
            Ok(term) => json!({"leads": true, "term": term.0}),
            Err(following) => json!({"leads": false, "leader": following.holder}),
        }
    }

    fn services(&self) -> Vec<Value> {
        let shared = self.shared.read();
        let now = self.clock.uptime();
        let services = shared.services.iter().map(|(name, known)| {
            let seconds = now.saturating_sub(known.since).as_secs();
            json!({"name": name, "state": known.state.words(), "forSeconds": seconds})
        });
        services.collect()
    }
}

fn watch(state: &WatchState) -> Value {
    let unreadable = state.unreadable.iter().map(|(key, why)| {
        json!({"object": key.to_string(), "version": why.version, "problem": why.problem})
    });
    json!({
        "address": state.address,
        "labels": state.selection.labels,
        "fields": state.selection.fields,
        "synced": state.synced,
        "objects": state.objects,
        "unreadable": unreadable.collect::<Vec<_>>(),
    })
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health")
            .field("phase", &self.shared.read().phase)
            .finish_non_exhaustive()
    }
}
