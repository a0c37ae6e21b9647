//! The health, readiness and debug state of a process.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    sync::Arc,
};

use parking_lot::RwLock;
use serde_json::{Value, json};

use super::{Component, component::ReadinessCheck};
use crate::{
    clock::{Clock, Uptime},
    context::Context,
    lease::Leadership,
    process::Process,
    watch::{WatchState, Watches},
};

/// The state of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComponentState {
    /// It was added and has not started.
    Waiting,
    /// It runs.
    Running,
    /// It returned.
    Ended,
    /// It panicked with this message.
    Panicked(String),
}

impl ComponentState {
    fn describe(&self) -> String {
        match self {
            Self::Waiting => "waiting".to_owned(),
            Self::Running => "running".to_owned(),
            Self::Ended => "ended".to_owned(),
            Self::Panicked(message) => format!("panicked: {message}"),
        }
    }
}

/// The lifecycle of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ProcessPhase {
    Starting,
    Running,
    Stopping,
}

/// The health of the whole process. Cheap to clone.
#[derive(Clone)]
pub struct Health {
    watches: Watches,
    leadership: Leadership,
    pub(super) clock: Clock,
    shared: Arc<RwLock<SharedHealth>>,
}

struct SharedHealth {
    phase: ProcessPhase,
    components: BTreeMap<&'static str, ComponentHealth>,
}

struct ComponentHealth {
    state: ComponentState,
    since: Uptime,
    readiness: Option<ReadinessCheck>,
}

impl Health {
    pub(super) fn new(context: &Context) -> Self {
        let shared = SharedHealth {
            phase: ProcessPhase::Starting,
            components: BTreeMap::new(),
        };
        Self {
            watches: context.watches.clone(),
            leadership: context.leadership.clone(),
            clock: context.clock,
            shared: Arc::new(RwLock::new(shared)),
        }
    }

    /// Adds a component; false if another one has its name, which then stays as it is.
    pub(super) fn register(&self, component: &Component) -> bool {
        let health = ComponentHealth {
            state: ComponentState::Waiting,
            since: self.clock.uptime(),
            readiness: component.readiness.clone(),
        };
        match self.shared.write().components.entry(component.name) {
            Entry::Vacant(entry) => {
                entry.insert(health);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    pub(super) fn set_state(&self, name: &'static str, state: ComponentState) {
        let since = self.clock.uptime();
        if let Some(health) = self.shared.write().components.get_mut(name) {
            health.state = state;
            health.since = since;
        }
    }

    pub(super) fn started(&self) {
        self.shared.write().phase = ProcessPhase::Running;
    }

    pub(super) fn stopping(&self) {
        self.shared.write().phase = ProcessPhase::Stopping;
    }

    /// The components that have failed; empty while the process is healthy.
    pub fn failures(&self) -> Vec<String> {
        let shared = self.shared.read();
        let failed = |health: &ComponentHealth| {
            matches!(
                health.state,
                ComponentState::Ended | ComponentState::Panicked(_)
            )
        };
        let failed = shared
            .components
            .iter()
            .filter(|(_, health)| failed(health));
        failed
            .map(|(name, health)| format!("the component {name} {}", health.state.describe()))
            .collect()
    }

    /// What the process waits for before it is ready; empty once it is.
    pub fn not_ready(&self) -> Vec<String> {
        let mut not_ready = Vec::new();
        let checks: Vec<_> = {
            let shared = self.shared.read();
            match shared.phase {
                ProcessPhase::Starting => {
                    not_ready.push("the components have not started".to_owned());
                }
                ProcessPhase::Running => {}
                ProcessPhase::Stopping => not_ready.push("the process is stopping".to_owned()),
            }
            let components = shared.components.iter();
            components
                .filter_map(|(name, health)| Some((*name, health.readiness.clone()?)))
                .collect()
        };
        let unsynced = self.watches.unsynced();
        not_ready.extend(
            unsynced
                .iter()
                .map(|address| format!("the watch of {address} has not listed yet")),
        );
        let waiting = checks
            .into_iter()
            .filter_map(|(name, check)| check().map(|what| format!("{name}: {what}")));
        not_ready.extend(waiting);
        not_ready.extend(self.failures());
        not_ready
    }

    /// The debug state: everything that helps to find a cause.
    pub fn state(&self) -> Value {
        let not_ready = self.not_ready();
        json!({
            "time": self.clock.now(),
            "uptimeSeconds": self.clock.uptime().as_secs(),
            "ready": not_ready.is_empty(),
            "notReady": not_ready,
            "leadership": self.leadership_state(),
            "components": self.components(),
            "watches": self.watches.states().iter().map(watch).collect::<Vec<_>>(),
            "queues": self.process().queues(),
        })
    }

    /// The process, with its telemetry and queues.
    pub(super) fn process(&self) -> &Process {
        self.watches.process()
    }

    fn leadership_state(&self) -> Value {
        match self.leadership.check() {
            Ok(term) => json!({"leads": true, "term": term.0}),
            Err(following) => json!({"leads": false, "leader": following.holder}),
        }
    }

    fn components(&self) -> Vec<Value> {
        let shared = self.shared.read();
        let now = self.clock.uptime();
        let components = shared.components.iter().map(|(name, health)| {
            let seconds = now.saturating_sub(health.since).as_secs();
            json!({"name": name, "state": health.state.describe(), "forSeconds": seconds})
        });
        components.collect()
    }
}

fn watch(state: &WatchState) -> Value {
    let undecodable = state.undecodable.iter().map(|(key, why)| {
        json!({"object": key.to_string(), "version": why.version, "problem": why.problem})
    });
    json!({
        "address": state.address,
        "labels": state.selection.labels,
        "fields": state.selection.fields,
        "synced": state.synced,
        "objects": state.objects,
        "undecodable": undecodable.collect::<Vec<_>>(),
    })
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health")
            .field("phase", &self.shared.read().phase)
            .finish_non_exhaustive()
    }
}
