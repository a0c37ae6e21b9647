//! Runs services, and ends them together.

use std::{any::Any, collections::HashMap, time::Duration};

use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::{Health, Service, State};
use crate::{
    clock::Clock,
    site::Site,
    why::{Code, Coded},
};

/// Why a process could not go on, or did not end in order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A service returned though nobody had asked it to.
    #[error("the service {0} ended, and the process cannot do without it")]
    Ended(&'static str),
    /// A service panicked.
    #[error("the service {name} panicked: {message}")]
    Panicked {
        /// Which one.
        name: &'static str,
        /// What it said.
        message: String,
    },
    /// Services did not end when they were told to.
    #[error("{} did not end within {grace:?} of being told to stop", names.join(", "))]
    Late {
        /// Which ones.
        names: Vec<&'static str>,
        /// How long they had.
        grace: Duration,
    },
}

/// The services of a process.
#[derive(Debug)]
pub struct Manager {
    services: Vec<Service>,
    health: Health,
    clock: Clock,
    grace: Duration,
}

impl Manager {
    /// Services that work at `site` and have thirty seconds to end, as pods have by default.
    pub fn new(site: &Site) -> Self {
        Self {
            services: Vec::new(),
            health: Health::new(site),
            clock: site.clock,
            grace: Duration::from_secs(30),
        }
    }

    /// With another time to end.
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Adds a service.
    pub fn add(&mut self, service: impl Into<Service>) {
        let service = service.into();
        self.health.expect(&service);
        self.services.push(service);
    }

    /// What can be said of the process while it runs.
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Runs everything until `stop`, or until a service fails; then ends the rest in order.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        let (early, late) = (CancellationToken::new(), CancellationToken::new());
        let mut run = Run {
            tasks: JoinSet::new(),
            names: HashMap::new(),
            health: self.health,
        };
        for service in self.services {
            let token = if service.outlasts { &late } else { &early };
            run.start(service, token.clone());
        }
        run.health.started();
        let failure = tokio::select! {
            () = stop.cancelled() => None,
            failure = run.first_to_end() => Some(failure),
        };
        if let Some(failure) = &failure {
            tracing::error!(code = %failure.code(), error = %failure, "the process ends");
        }
        run.health.stopping();
        let ending = run.end(&early, &late);
        let ended = self.clock.within(self.grace, ending).await;
        let names = run.left();
        let late = ended.is_none().then_some(Error::Late {
            names,
            grace: self.grace,
        });
        if let Some(late) = &late {
            tracing::error!(code = %late.code(), error = %late, "the process does not wait any longer");
        }
        failure.or(late).map_or(Ok(()), Err)
    }
}

/// Services under way.
struct Run {
    tasks: JoinSet<()>,
    /// The name of each, and whether it outlasts others.
    names: HashMap<Id, (&'static str, bool)>,
    health: Health,
}

impl Run {
    fn start(&mut self, service: Service, stop: CancellationToken) {
        let (name, outlasts) = (service.name, service.outlasts);
        let task = self.tasks.spawn(service.run(stop));
        self.names.insert(task.id(), (name, outlasts));
        self.health.note(name, State::Running);
    }

    /// Resolves with the failure of a service that ended; never if there is none.
    async fn first_to_end(&mut self) -> Error {
        match self.tasks.join_next_with_id().await {
            Some(ended) => {
                let (name, panic) = self.ended(ended);
                panic.unwrap_or(Error::Ended(name))
            }
            None => std::future::pending().await,
        }
    }

    /// Ends those that need others, then the others.
    async fn end(&mut self, early: &CancellationToken, late: &CancellationToken) {
        early.cancel();
        while self.names.values().any(|(_, outlasts)| !outlasts) {
            self.one_more().await;
        }
        late.cancel();
        while !self.names.is_empty() {
            self.one_more().await;
        }
    }

    async fn one_more(&mut self) {
        if let Some(ended) = self.tasks.join_next_with_id().await
            && let (_, Some(panic)) = self.ended(ended)
        {
            tracing::error!(error = %panic, "a service failed while it was stopped");
        }
    }

    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) -> (&'static str, Option<Error>) {
        let (id, panic) = match ended {
            Ok((id, ())) => (id, None),
            Err(error) => (error.id(), Some(said(error))),
        };
        let (name, _) = self.names.remove(&id).unwrap_or(("unknown", false));
        let state = panic.clone().map_or(State::Ended, State::Panicked);
        self.health.note(name, state);
        (name, panic.map(|message| Error::Panicked { name, message }))
    }

    /// Those that have not ended.
    fn left(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.names.values().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names
    }
}

/// What a task that did not return says of it.
fn said(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "it was aborted".to_owned();
    };
    let panic: &(dyn Any + Send) = &*panic;
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it said nothing".to_owned())
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Ended(_) | Self::Panicked { .. } => Code("NT-KIT-007"),
            Self::Late { .. } => Code("NT-KIT-008"),
        }
    }
}
