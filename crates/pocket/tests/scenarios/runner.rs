//! Runs scenario files.
//!
//! May use the public API of `neap_pocket` and `kube` as a transport, nothing else: a scenario sees
//! what any client sees. At the end of each, the oracles check every response. A scenario ends at
//! its first failure, because later blocks build on earlier ones.

#[path = "../suite/support/chronicle.rs"]
mod chronicle;
mod exchange;
mod observe;
pub(crate) mod own;
pub(crate) mod pattern;
mod record;
pub(crate) mod scenario;
pub(crate) mod server;
mod stream;
mod variables;

use std::{collections::BTreeMap, fmt, time::Duration};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout_at};

use exchange::Exchange;
use record::Recording;
use scenario::{Block, EventPattern, ExpectedResponse, Request, Scenario, Step};
use server::{Server, TargetServer};
use stream::{Next, Stream};
use variables::Variables;

/// How long `later` and `events` wait before they fail. Virtual time in process.
const EXPECTATION_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause between two attempts of a `later` block.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// How long a stream must stay silent to count as quiet.
const SILENCE: Duration = Duration::from_millis(1500);

/// Why a scenario failed: where, and what differs.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    fn at(self, scenario: &Scenario, block: &Block) -> Self {
        let place = format!("tests/scenarios/{}.md:{}", scenario.name, block.line);
        Self(format!("{place}: {}\n{}", block.heading, self.0))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Runs one scenario on a runtime of its own.
pub(crate) fn run(scenario: &Scenario, place: &TargetServer) -> Result<(), Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder
        .enable_all()
        .start_paused(matches!(place, TargetServer::InProcess));
    let runtime = builder
        .build()
        .map_err(|error| Failure::new(error.to_string()))?;
    runtime.block_on(async {
        let server = Server::start(place, &scenario.name).await?;
        let mut play = Play::new(&server, scenario);
        let outcome = play.all(scenario).await;
        server.tidy().await;
        outcome.and_then(|()| server.judge())
    })
}

/// A running scenario.
struct Play<'a> {
    server: &'a Server,
    variables: Variables,
    streams: BTreeMap<String, Stream>,
    record: Option<Recording>,
}

impl<'a> Play<'a> {
    fn new(server: &'a Server, scenario: &Scenario) -> Self {
        let variables = server.variables();
        let given = |name: &str| variables.get(name).unwrap_or_default().to_owned();
        Self {
            server,
            record: Recording::of(scenario, &given("ns"), &given("id")),
            variables,
            streams: BTreeMap::new(),
        }
    }

    /// Ends at the first failure, unless the responses are recorded: then all of them are wanted.
    async fn all(&mut self, scenario: &Scenario) -> Result<(), Failure> {
        let mut failures = Vec::new();
        for block in &scenario.blocks {
            self.note(&json!({"line": block.line}));
            if let Err(failure) = self.step(&block.step).await {
                failures.push(failure.at(scenario, block).0);
                if self.record.is_none() {
                    break;
                }
            }
        }
        if failures.is_empty() || self.record.is_some() {
            self.last_words().await?;
        }
        if let Some(record) = &self.record {
            record.write()?;
        }
        if failures.is_empty() {
            return Ok(());
        }
        Err(Failure(failures.join("\n\n")))
    }

    async fn last_words(&mut self) -> Result<(), Failure> {
        let mut said = Vec::new();
        for stream in self.streams.values_mut() {
            said.extend(stream.drain().await?);
        }
        for event in said {
            self.note(&event.entry());
        }
        Ok(())
    }

    fn note(&mut self, entry: &Value) {
        if let Some(record) = &mut self.record {
            record.add(entry);
        }
    }

    async fn step(&mut self, step: &Step) -> Result<(), Failure> {
        match step {
            Step::Ask(request, answer) => self.ask(request, answer).await,
            Step::Later(request, answer) => self.later(request, answer).await,
            Step::Watch(name, request) => {
                let stream = Stream::open(name, self.server, request, &self.variables).await?;
                self.streams.insert(name.clone(), stream);
                Ok(())
            }
            Step::Events(name, events) => {
                for expected in events {
                    self.event(name, expected).await?;
                }
                Ok(())
            }
            Step::Wait(duration) => {
                sleep(*duration).await;
                Ok(())
            }
        }
    }

    async fn ask(&mut self, request: &Request, answer: &ExpectedResponse) -> Result<(), Failure> {
        let exchange = Exchange::make(self.server, request, &self.variables).await?;
        self.note(&exchange.entry());
        let (variables, verdict) = exchange.check(answer, &self.variables);
        self.variables = variables;
        verdict
    }

    async fn later(&mut self, request: &Request, answer: &ExpectedResponse) -> Result<(), Failure> {
        let deadline = tokio::time::Instant::now() + EXPECTATION_TIMEOUT;
        loop {
            let exchange = Exchange::make(self.server, request, &self.variables).await?;
            let (variables, verdict) = exchange.check(answer, &self.variables);
            let late = tokio::time::Instant::now() > deadline;
            if verdict.is_err() && !late {
                sleep(RETRY_INTERVAL).await;
                continue;
            }
            self.note(&exchange.entry());
            self.variables = variables;
            return verdict.map_err(|failure| {
                Failure::new(format!("not within {EXPECTATION_TIMEOUT:?}: {failure}"))
            });
        }
    }

    async fn event(&mut self, name: &str, expected: &EventPattern) -> Result<(), Failure> {
        let unknown = || Failure::new(format!("no watch is called {name}"));
        let stream = self.streams.get_mut(name).ok_or_else(unknown)?;
        if let EventPattern::Quiet = expected {
            return stream.quiet(SILENCE).await;
        }
        let deadline = tokio::time::Instant::now() + EXPECTATION_TIMEOUT;
        let next = timeout_at(deadline, stream.next(expected.is_bookmark())).await;
        let next =
            next.map_err(|_| Failure::new(format!("{name}: no event came; expected {expected}")))??;
        self.note(&next.entry(name));
        match (expected, next) {
            (EventPattern::End, Next::End) => Ok(()),
            (EventPattern::Event(kind, pattern), Next::Event(event)) => {
                let (variables, verdict) = event.check(kind, pattern, &self.variables);
                self.variables = variables;
                verdict
            }
            (expected, next) => Err(Failure::new(format!(
                "{name}: expected {expected}, got {next}"
            ))),
        }
    }
}
