//! Asks for many services at once, and is fair to all whom it asks.
//!
//! A server that hangs holds up those who need its answer, and nobody else: of the places there are,
//! only a few may wait for the same one.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use neap_kit::{clock::Clock, key::Key};
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

/// How questions are asked.
#[derive(Debug, Clone)]
pub struct Poll {
    oracle: Arc<dyn Oracle>,
    defaults: Defaults,
    clock: Clock,
    /// So many questions are open at once.
    pub concurrency: usize,
    /// So many of them at the same server.
    pub per_server: usize,
    /// The questions of a round are begun within this time.
    pub spread: Duration,
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
            concurrency: 64,
            per_server: 8,
            spread: Duration::from_secs(2),
        }
    }

    /// Asks without waiting for a moment of its own.
    pub fn at_once(mut self) -> Self {
        self.spread = Duration::ZERO;
        self
    }

    /// Whether anybody asks for these services. What several of them want to know is asked once.
    pub async fn round(&self, services: &[Watched], jitter: &mut Jitter) -> BTreeMap<Key, Verdict> {
        let waiting: Vec<Vec<Waiting>> = services.iter().map(|one| self.waiting(one)).collect();
        let questions = waiting.iter().flatten().flat_map(Waiting::questions);
        let answers = self.answers(questions, jitter).await;
        let now = self.clock.now();
        let verdicts = services.iter().zip(waiting).map(|(service, waiting)| {
            let waiting = waiting.into_iter();
            let answers: Vec<_> = waiting.map(|one| one.measured(&answers)).collect();
            let verdict = verdict(&answers, now, service.cooldown);
            (service.key.clone(), verdict)
        });
        verdicts.collect()
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

    async fn answers<'a>(
        &self,
        questions: impl Iterator<Item = &'a Question>,
        jitter: &mut Jitter,
    ) -> Answers {
        let room = Arc::new(Semaphore::new(self.concurrency));
        let mut servers: HashMap<String, Arc<Semaphore>> = HashMap::new();
        let mut open = FuturesUnordered::new();
        let mut seen = HashSet::new();
        // In their own order, so that a seed gives each its own moment again.
        for question in questions.filter(|question| seen.insert(*question)) {
            let server = question.asked_of();
            let per_server = || Arc::new(Semaphore::new(self.per_server));
            let places = servers.entry(server).or_insert_with(per_server).clone();
            let after = jitter.below(self.spread);
            open.push(self.asked(question.clone(), after, places, room.clone()));
        }
        tracing::debug!(
            questions = open.len(),
            servers = servers.len(),
            "triggers are asked"
        );
        let mut answers = Answers::new();
        while let Some((question, answer)) = open.next().await {
            answers.insert(question, answer);
        }
        answers
    }

    /// Waits for a place at the server first: who waits there takes no place from others.
    async fn asked(
        &self,
        question: Question,
        after: Duration,
        server: Arc<Semaphore>,
        room: Arc<Semaphore>,
    ) -> (Question, Result<f64, Problem>) {
        self.clock.sleep(after).await;
        let _at_server = server.acquire().await;
        let _at_all = room.acquire().await;
        let answer = self.oracle.ask(&question).await;
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

    fn measured(self, answers: &Answers) -> Measurement {
        let answer = |question| {
            let unasked = || Err(Problem::Unreachable("it was not asked".to_owned()));
            answers.get(question).cloned().unwrap_or_else(unasked)
        };
        match self {
            Self::Known(measurement) => measurement,
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
