//! Asks for many services at once, and is fair to all whom it asks.
//!
//! A server that hangs holds up those who need its answer, and nobody else: of the places there are,
//! only a few may wait for the same one, and what is known of a service is told at once.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use neap_kit::{clock::Clock, key::Key};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::{
    Defaults, Measurement, Oracle, Problem, Question, Quiet, Verdict, jitter::Jitter,
    question::Questions, verdict,
};
use crate::api::{Trigger, TriggerKind};

/// A service that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// The ElastiService.
    pub key: Key,
    /// How long it must be quiet.
    pub cooldown: Duration,
    /// What is asked.
    pub triggers: Vec<Trigger>,
    /// What the resolvers say of it.
    pub quiet: Result<Quiet, Problem>,
}

/// So many questions are open at once: enough that many servers may hang beside those that answer.
const CONCURRENCY: usize = 512;
/// So many of them at the same server.
const PER_SERVER: usize = 8;

/// How questions are asked.
#[derive(Debug, Clone)]
pub struct Poll {
    oracle: Arc<dyn Oracle>,
    defaults: Defaults,
    clock: Clock,
    /// The questions of a round are begun within this time.
    pub spread: Duration,
    /// Shared by rounds: one that takes long leaves others the same room.
    places: Arc<Places>,
}

/// Where questions wait for their turn.
#[derive(Debug)]
struct Places {
    all: Semaphore,
    servers: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            all: Semaphore::new(CONCURRENCY),
            servers: Mutex::default(),
        }
    }
}

impl Places {
    fn at(&self, server: String) -> Arc<Semaphore> {
        let mut servers = self.servers.lock();
        let places = || Arc::new(Semaphore::new(PER_SERVER));
        servers.entry(server).or_insert_with(places).clone()
    }

    /// Servers that nobody asks are not remembered.
    fn forget(&self) {
        let mut servers = self.servers.lock();
        servers.retain(|_, places| Arc::strong_count(places) > 1);
    }
}

/// What one trigger waits for.
enum Waiting {
    Prometheus(Questions),
    Known(Measurement),
}

type Answers = HashMap<Question, Result<f64, Problem>>;

impl Poll {
    /// Asks `oracle`, as the operator was told.
    pub fn new(oracle: Arc<dyn Oracle>, defaults: Defaults, clock: Clock) -> Self {
        Self {
            oracle,
            defaults,
            clock,
            spread: Duration::from_secs(2),
            places: Arc::default(),
        }
    }

    /// Asks without waiting for a moment of its own, or for a place that others have.
    pub fn at_once(mut self) -> Self {
        self.spread = Duration::ZERO;
        self.places = Arc::default();
        self
    }

    /// Whether anybody asks for these services.
    pub async fn round(&self, services: &[Watched], jitter: &mut Jitter) -> BTreeMap<Key, Verdict> {
        let mut verdicts = BTreeMap::new();
        let tell = |index: usize, verdict| {
            verdicts.insert(services[index].key.clone(), verdict);
        };
        self.each(services, jitter, tell).await;
        verdicts
    }

    /// The same, told of each service by its place in the list as soon as its own triggers are
    /// answered. What several of them want to know is asked once.
    pub async fn each(
        &self,
        services: &[Watched],
        jitter: &mut Jitter,
        mut tell: impl FnMut(usize, Verdict),
    ) {
        let waiting: Vec<Vec<Waiting>> = services.iter().map(|one| self.waiting(one)).collect();
        let mut unanswered = vec![0; services.len()];
        let mut wanted: HashMap<&Question, Vec<usize>> = HashMap::new();
        let mut open = FuturesUnordered::new();
        // In their own order, so that a seed gives each its own moment again.
        for (index, waiting) in waiting.iter().enumerate() {
            for question in waiting.iter().flat_map(Waiting::questions) {
                let by = wanted.entry(question).or_insert_with(|| {
                    open.push(self.asked(question, jitter.below(self.spread)));
                    Vec::new()
                });
                by.push(index);
                unanswered[index] += 1;
            }
        }
        tracing::debug!(questions = open.len(), "triggers are asked");
        let mut answers = Answers::new();
        let mut tell = |index: usize, answers: &Answers| {
            let measured = waiting[index].iter().map(|one| one.measured(answers));
            let measured: Vec<_> = measured.collect();
            let verdict = verdict(&measured, self.clock.now(), services[index].cooldown);
            tell(index, verdict);
        };
        for (index, _) in unanswered
            .iter()
            .enumerate()
            .filter(|(_, left)| **left == 0)
        {
            tell(index, &answers);
        }
        while let Some((question, answer)) = open.next().await {
            answers.insert(question.clone(), answer);
            for index in wanted.remove(question).into_iter().flatten() {
                unanswered[index] -= 1;
                if unanswered[index] == 0 {
                    tell(index, &answers);
                }
            }
        }
        drop(open);
        self.places.forget();
    }

    fn waiting(&self, service: &Watched) -> Vec<Waiting> {
        let triggers = service.triggers.iter().map(|trigger| match trigger.kind {
            TriggerKind::Requests => Waiting::Known(Measurement::Requests(service.quiet.clone())),
            TriggerKind::Prometheus => {
                match Questions::of(trigger, service.cooldown, &self.defaults) {
                    Ok(questions) => Waiting::Prometheus(questions),
                    Err(problem) => Waiting::Known(Measurement::Unasked(problem)),
                }
            }
        });
        triggers.collect()
    }

    /// Waits for a place at the server first: who waits there takes no place from others.
    async fn asked<'a>(
        &self,
        question: &'a Question,
        after: Duration,
    ) -> (&'a Question, Result<f64, Problem>) {
        self.clock.sleep(after).await;
        let server = self.places.at(question.asked_of());
        let _at_server = server.acquire().await;
        let _at_all = self.places.all.acquire().await;
        let answer = self.oracle.ask(question).await;
        (question, answer)
    }
}

impl Waiting {
    fn questions(&self) -> impl Iterator<Item = &Question> {
        let questions = match self {
            Self::Prometheus(questions) => Some([&questions.health, &questions.value]),
            Self::Known(_) => None,
        };
        questions.into_iter().flatten()
    }

    fn measured(&self, answers: &Answers) -> Measurement {
        let answer = |question| {
            let unasked = || Err(Problem::Unreachable("it was not asked".to_owned()));
            answers.get(question).cloned().unwrap_or_else(unasked)
        };
        match self {
            Self::Known(measurement) => measurement.clone(),
            Self::Prometheus(questions) => Measurement::Prometheus {
                health: answer(&questions.health),
                value: answer(&questions.value),
                threshold: questions.threshold,
            },
        }
    }
}

#[cfg(test)]
mod tests;
