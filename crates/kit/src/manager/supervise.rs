//! Runs services, and ends them together.

use std::{
    any::Any,
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::{Health, Service, State, Turn};
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
    #[error("{} did not end in time: everything has {grace:?} together once it is told to stop", names.join(", "))]
    Late {
        /// Which ones.
        names: Vec<&'static str>,
        /// How long all of them together had.
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
        let mut run = Run {
            tasks: JoinSet::new(),
            names: HashMap::new(),
            tokens: Turn::ALL.map(|turn| (turn, CancellationToken::new())),
            health: self.health,
        };
        for service in self.services {
            run.start(service);
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
        let names = run.end(self.clock, self.grace).await;
        let grace = self.grace;
        let late = (!names.is_empty()).then_some(Error::Late { names, grace });
        if let Some(late) = &late {
            tracing::error!(code = %late.code(), error = %late, "the process did not wait any longer");
        }
        failure.or(late).map_or(Ok(()), Err)
    }
}

/// A turn has at least this time to end, whoever is stuck before it, unless there is hardly any.
const RESERVE: Duration = Duration::from_secs(1);

/// Services under way.
struct Run {
    tasks: JoinSet<()>,
    names: HashMap<Id, (&'static str, Turn, AbortHandle)>,
    tokens: [(Turn, CancellationToken); Turn::ALL.len()],
    health: Health,
}

impl Run {
    fn start(&mut self, service: Service) {
        let (name, turn) = (service.name, service.turn);
        let token = self.tokens.iter().find(|(one, _)| *one == turn);
        let token = token.map(|(_, token)| token.clone()).unwrap_or_default();
        let task = self.tasks.spawn(service.run(token));
        self.names.insert(task.id(), (name, turn, task));
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

    /// Ends one turn after the other; the names of those that had to be cut off.
    async fn end(&mut self, clock: Clock, grace: Duration) -> Vec<&'static str> {
        let deadline = clock.uptime() + grace;
        let mut late = Vec::new();
        for (turn, token) in self.tokens.clone() {
            let left = deadline.saturating_sub(clock.uptime());
            token.cancel();
            let share = left.saturating_sub(self.reserved(turn, left));
            let ended = clock.within(share, self.all_ended(turn)).await;
            if ended.is_none() {
                late.extend(self.cut_off(turn));
            }
        }
        late.sort_unstable();
        late
    }

    /// How much of what is left the turns after this one are kept.
    fn reserved(&self, turn: Turn, left: Duration) -> Duration {
        let later = self.names.values().map(|(_, one, _)| *one);
        let later: BTreeSet<_> = later.filter(|one| *one > turn).collect();
        (RESERVE * later.len() as u32).min(left / 3)
    }

    async fn all_ended(&mut self, turn: Turn) {
        while self.names.values().any(|(_, one, _)| *one == turn) {
            self.one_more().await;
        }
    }

    /// Lets go of those that have not ended in their turn.
    fn cut_off(&mut self, turn: Turn) -> Vec<&'static str> {
        let of_turn = self.names.extract_if(|_, (_, one, _)| *one == turn);
        let cut = of_turn.map(|(_, (name, _, task))| {
            task.abort();
            name
        });
        cut.collect()
    }

    async fn one_more(&mut self) {
        if let Some(ended) = self.tasks.join_next_with_id().await
            && let (_, Some(panic)) = self.ended(ended)
        {
            tracing::error!(error = %panic, "a service failed while it was stopped");
        }
    }

    /// Notes who ended, and why if it panicked.
    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) -> (&'static str, Option<Error>) {
        let (id, panic) = match ended {
            Ok((id, ())) => (id, None),
            Err(error) => (error.id(), Some(said(error))),
        };
        // One that was cut off is known to be late, and no longer by its name.
        let Some((name, ..)) = self.names.remove(&id) else {
            return ("unknown", None);
        };
        let state = panic.clone().map_or(State::Ended, State::Panicked);
        self.health.note(name, state);
        (name, panic.map(|message| Error::Panicked { name, message }))
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
