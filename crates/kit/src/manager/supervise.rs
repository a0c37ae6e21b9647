//! Runs components, and stops them together.

use std::{
    any::Any,
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use tokio::{
    sync::mpsc,
    task::{AbortHandle, Id, JoinError, JoinSet},
};
use tokio_util::sync::CancellationToken;

use super::{Component, ComponentState, Health, ShutdownPhase};
use crate::{
    clock::Clock,
    context::Context,
    why::{Code, Coded},
};

/// Why a process failed, or did not stop in order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A component returned before it was stopped.
    #[error("the component {0} ended, and the process cannot run without it")]
    Ended(&'static str),
    /// A component panicked.
    #[error("the component {name} panicked: {message}")]
    Panicked {
        /// The name of the component.
        name: &'static str,
        /// The message of the panic.
        message: String,
    },
    /// Two components have one name, so neither logs nor readiness could tell them apart.
    #[error("two components of the process are named {0}")]
    DuplicateName(&'static str),
    /// Components did not end within the grace period.
    #[error("{} did not end in time: all components together have {grace:?} to stop", names.join(", "))]
    ShutdownTimeout {
        /// The names of the components.
        names: Vec<&'static str>,
        /// The grace period of all components together.
        grace: Duration,
    },
}

/// Runs the components of a process.
#[derive(Debug)]
pub struct Manager {
    components: Vec<Component>,
    duplicate: Option<&'static str>,
    late: (ComponentStarter, mpsc::Receiver<Component>),
    health: Health,
    clock: Clock,
    grace: Duration,
}

impl Manager {
    /// A manager without components, and with a grace period of thirty seconds, the default of pods.
    pub fn new(context: &Context) -> Self {
        let (sender, receiver) = mpsc::channel(MAX_UNSTARTED_COMPONENTS);
        Self {
            components: Vec::new(),
            duplicate: None,
            late: (ComponentStarter { sender }, receiver),
            health: Health::new(context),
            clock: context.clock,
            grace: DEFAULT_GRACE,
        }
    }

    /// The same manager with another grace period.
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Adds a component. A run refuses to start if another one has its name.
    pub fn add(&mut self, component: impl Into<Component>) {
        let component = component.into();
        if !self.health.register(&component) {
            self.duplicate = Some(component.name);
        }
        self.components.push(component);
    }

    /// A handle that adds components while the others run.
    pub fn starter(&self) -> ComponentStarter {
        self.late.0.clone()
    }

    /// The health of the process.
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Runs all components until `stop`, or until one fails; then stops the others in order.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        if let Some(name) = self.duplicate {
            return Err(Error::DuplicateName(name));
        }
        // A starter stays open as long as the process runs, whether a component holds one or not.
        let (_open, mut late) = self.late;
        let mut running = RunningComponents {
            tasks: JoinSet::new(),
            components: HashMap::new(),
            stop_tokens: ShutdownPhase::ALL.map(|phase| (phase, CancellationToken::new())),
            health: self.health,
        };
        for component in self.components {
            running.start(component);
        }
        running.health.started();
        let failure = loop {
            tokio::select! {
                () = stop.cancelled() => break None,
                failure = running.first_failure() => break Some(failure),
                Some(component) = late.recv() => {
                    if !running.health.register(&component) {
                        break Some(Error::DuplicateName(component.name));
                    }
                    running.start(component);
                }
            }
        };
        if let Some(failure) = &failure {
            tracing::error!(code = %failure.code(), error = %failure, "the process stops because of a failure");
        }
        running.health.stopping();
        let names = running.shut_down(self.clock, self.grace).await;
        let grace = self.grace;
        let late = (!names.is_empty()).then_some(Error::ShutdownTimeout { names, grace });
        if let Some(late) = &late {
            tracing::error!(code = %late.code(), error = %late, "the grace period is over");
        }
        failure.or(late).map_or(Ok(()), Err)
    }
}

/// The number of components that can be added before the manager starts them.
const MAX_UNSTARTED_COMPONENTS: usize = 256;

/// Adds components to a manager that runs already, for parts of a program that start when they are first
/// used. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ComponentStarter {
    sender: mpsc::Sender<Component>,
}

impl ComponentStarter {
    /// Starts a component, which is from then on like one that was added before the run. It is dropped if
    /// the manager has stopped.
    pub async fn start(&self, component: impl Into<Component>) {
        let component = component.into();
        let name = component.name;
        if self.sender.send(component).await.is_err() {
            tracing::debug!(name, "a component is not started: the process stops");
        }
    }
}

/// The grace period of a manager, unless it has another.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);
/// The time that is reserved for each later phase, even if a component of an earlier one hangs.
const PHASE_RESERVE: Duration = Duration::from_secs(1);

/// Components that have started.
struct RunningComponents {
    tasks: JoinSet<()>,
    components: HashMap<Id, (&'static str, ShutdownPhase, AbortHandle)>,
    stop_tokens: [(ShutdownPhase, CancellationToken); ShutdownPhase::ALL.len()],
    health: Health,
}

impl RunningComponents {
    fn start(&mut self, component: Component) {
        let (name, phase) = (component.name, component.phase);
        let token = self.stop_tokens.iter().find(|(one, _)| *one == phase);
        let token = token.map(|(_, token)| token.clone()).unwrap_or_default();
        let task = self.tasks.spawn(component.run(token));
        self.components.insert(task.id(), (name, phase, task));
        self.health.set_state(name, ComponentState::Running);
    }

    /// Resolves when a component ends; never if there is none.
    async fn first_failure(&mut self) -> Error {
        match self.tasks.join_next_with_id().await {
            Some(joined) => {
                let (name, panic) = self.record_end(joined);
                panic.unwrap_or(Error::Ended(name))
            }
            None => std::future::pending().await,
        }
    }

    /// Stops one phase after the other. Returns the names of the components that were aborted.
    async fn shut_down(&mut self, clock: Clock, grace: Duration) -> Vec<&'static str> {
        let deadline = clock.uptime() + grace;
        let mut late = Vec::new();
        for (phase, token) in self.stop_tokens.clone() {
            let remaining = deadline.saturating_sub(clock.uptime());
            token.cancel();
            let share = remaining.saturating_sub(self.reserved_after(phase, remaining));
            let ended = clock.within(share, self.all_ended(phase)).await;
            if ended.is_none() {
                late.extend(self.abort(phase));
            }
        }
        late.sort_unstable();
        late
    }

    /// The part of the remaining time that is reserved for later phases: at most a third.
    fn reserved_after(&self, phase: ShutdownPhase, remaining: Duration) -> Duration {
        let later = self.components.values().map(|(_, one, _)| *one);
        let later: BTreeSet<_> = later.filter(|one| *one > phase).collect();
        (PHASE_RESERVE * later.len() as u32).min(remaining / 3)
    }

    async fn all_ended(&mut self, phase: ShutdownPhase) {
        while self.components.values().any(|(_, one, _)| *one == phase) {
            self.join_next().await;
        }
    }

    /// Aborts the components of a phase that have not ended.
    fn abort(&mut self, phase: ShutdownPhase) -> Vec<&'static str> {
        let of_phase = self.components.extract_if(|_, (_, one, _)| *one == phase);
        let aborted = of_phase.map(|(_, (name, _, task))| {
            task.abort();
            name
        });
        aborted.collect()
    }

    async fn join_next(&mut self) {
        if let Some(joined) = self.tasks.join_next_with_id().await
            && let (_, Some(panic)) = self.record_end(joined)
        {
            tracing::error!(error = %panic, "a component failed while it was stopped");
        }
    }

    /// Records the end of a component. Returns its name, and the error if it panicked.
    fn record_end(&mut self, joined: Result<(Id, ()), JoinError>) -> (&'static str, Option<Error>) {
        let (id, panic) = match joined {
            Ok((id, ())) => (id, None),
            Err(error) => (error.id(), Some(panic_message(error))),
        };
        // An aborted component is already reported as late.
        let Some((name, ..)) = self.components.remove(&id) else {
            return ("unknown", None);
        };
        let state = panic
            .clone()
            .map_or(ComponentState::Ended, ComponentState::Panicked);
        self.health.set_state(name, state);
        (name, panic.map(|message| Error::Panicked { name, message }))
    }
}

/// The message of a task that panicked or was aborted.
fn panic_message(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "it was aborted".to_owned();
    };
    let panic: &(dyn Any + Send) = &*panic;
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Ended(_) | Self::Panicked { .. } => Code("NT-KIT-007"),
            Self::DuplicateName(_) => Code("NT-KIT-040"),
            Self::ShutdownTimeout { .. } => Code("NT-KIT-008"),
        }
    }
}
