//! Runs scenario files.
//!
//! May use the public face of `neap_pocket` and `kube` as a transport, nothing else: what a scenario
//! sees is what any client sees. At the end of each, the oracles judge everything that was answered. A scenario ends at its first failure, because later blocks build on
//! earlier ones.

#[path = "../support/chronicle.rs"]
mod chronicle;
mod exchange;
mod observe;
pub(crate) mod own;
pub(crate) mod pattern;
pub(crate) mod scenario;
pub(crate) mod server;
mod stream;
mod variables;

use std::{collections::BTreeMap, fmt, time::Duration};

use tokio::time::{sleep, timeout_at};

use exchange::Exchange;
use scenario::{Answer, Block, EventPattern, Request, Scenario, Step};
use server::{Place, Server};
use stream::{Next, Stream};
use variables::Variables;

/// How long `later` and `events` wait before they give up. Virtual time in process.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two tries of a `later` block.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a stream must stay silent to count as quiet.
const QUIET: Duration = Duration::from_millis(1500);

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
pub(crate) fn run(scenario: &Scenario, place: &Place) -> Result<(), Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder
        .enable_all()
        .start_paused(matches!(place, Place::InProcess));
    let runtime = builder
        .build()
        .map_err(|error| Failure::new(error.to_string()))?;
    runtime.block_on(async {
        let server = Server::start(place, &scenario.name).await?;
        let mut play = Play::new(&server);
        let outcome = play.all(scenario).await;
        server.tidy().await;
        outcome.and_then(|()| server.judge())
    })
}

/// One scenario being played.
struct Play<'a> {
    server: &'a Server,
    variables: Variables,
    streams: BTreeMap<String, Stream>,
}

impl<'a> Play<'a> {
    fn new(server: &'a Server) -> Self {
        Self {
            server,
            variables: server.variables(),
            streams: BTreeMap::new(),
        }
    }

    async fn all(&mut self, scenario: &Scenario) -> Result<(), Failure> {
        for block in &scenario.blocks {
            self.step(&block.step)
                .await
                .map_err(|failure| failure.at(scenario, block))?;
        }
        for stream in self.streams.values_mut() {
            stream.drain().await?;
        }
        Ok(())
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
            Step::Events(name, events) => self.events(name, events).await,
            Step::Wait(duration) => {
                sleep(*duration).await;
                Ok(())
            }
        }
    }

    async fn ask(&mut self, request: &Request, answer: &Answer) -> Result<(), Failure> {
        let exchange = Exchange::make(self.server, request, &self.variables).await?;
        self.variables = exchange.check(answer, &self.variables)?;
        Ok(())
    }

    async fn later(&mut self, request: &Request, answer: &Answer) -> Result<(), Failure> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let exchange = Exchange::make(self.server, request, &self.variables).await?;
            match exchange.check(answer, &self.variables) {
                Ok(variables) => {
                    self.variables = variables;
                    return Ok(());
                }
                Err(failure) if tokio::time::Instant::now() > deadline => {
                    let text = format!("not within {PATIENCE:?}: {failure}");
                    return Err(Failure::new(text));
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    async fn events(&mut self, name: &str, events: &[EventPattern]) -> Result<(), Failure> {
        let unknown = || Failure::new(format!("no watch is called {name}"));
        let stream = self.streams.get_mut(name).ok_or_else(unknown)?;
        for expected in events {
            if let EventPattern::Quiet = expected {
                stream.quiet(QUIET).await?;
                continue;
            }
            let deadline = tokio::time::Instant::now() + PATIENCE;
            let bookmarks = expected.is_bookmark();
            let next = timeout_at(deadline, stream.next(bookmarks)).await;
            let next = next.map_err(|_| {
                Failure::new(format!("{name}: no event came; expected {expected}"))
            })??;
            match (expected, next) {
                (EventPattern::End, Next::End) => {}
                (EventPattern::Event(kind, pattern), Next::Event(event)) => {
                    self.variables = event.check(kind, pattern, &self.variables)?;
                }
                (expected, next) => {
                    return Err(Failure::new(format!(
                        "{name}: expected {expected}, got {next}"
                    )));
                }
            }
        }
        Ok(())
    }
}
