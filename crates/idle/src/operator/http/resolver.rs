//! What a resolver answers on its internal port.

use std::{collections::HashMap, fmt, sync::Arc};

use futures::future::BoxFuture;
use http::{Method, Response, StatusCode};
use neap_kit::telemetry::Pages;

use super::{
    Answer, Answers, Asked,
    answer::{denied, json, metrics, only, read, text, typed},
};
use crate::{
    api::wire::{
        ACTIVITY, Activity, CRD_CACHE_STATUS, Directory, PROBE, Probe, Probed, QUEUE_STATUS,
        QueueStatus, TAKEN, Taken, Took,
    },
    operator::tokens::Door,
};

/// More connections than these prove nothing more.
const MOST_PROBES: u32 = 64;
/// More sources than these are of no probe.
const MOST_SOURCES: usize = 4096;

/// A resolver, as its internal port sees it.
pub trait Resolver: fmt::Debug + Send + Sync {
    /// Whether it holds requests for this Service.
    fn holds(&self, namespace: &str, service: &str) -> bool;
    /// The services that it knows of, without secrets.
    fn directory(&self) -> Directory;
    /// What must happen before it is ready; empty once it is.
    fn missing(&self) -> Vec<String>;
    /// Opens connections and says what came of them.
    fn probe(&self, probe: Probe) -> BoxFuture<'_, Probed>;
    /// Which of these connections it took.
    fn taken(&self, asked: Took) -> Taken;
    /// What it was asked for.
    fn activity(&self) -> Activity;
    /// What it counts.
    fn metrics(&self) -> Pages;
}

/// What a resolver answers on its internal port.
#[derive(Debug)]
pub struct ResolverRoutes {
    /// Who may ask.
    pub door: Door,
    /// Who knows.
    pub resolver: Arc<dyn Resolver>,
}

impl Answers for ResolverRoutes {
    fn answer<'a>(&'a self, asked: &'a Asked) -> BoxFuture<'a, Answer> {
        Box::pin(async {
            let answer = match asked.uri().path() {
                "/healthz" => only(&Method::GET, asked).map(|()| ok()),
                "/readyz" => only(&Method::GET, asked).map(|()| self.ready()),
                "/metrics" => only(&Method::GET, asked).map(|()| metrics(self.resolver.metrics())),
                QUEUE_STATUS | CRD_CACHE_STATUS | ACTIVITY => self.told(asked).await,
                PROBE | TAKEN => self.done(asked).await,
                _ => Ok(text(StatusCode::NOT_FOUND, "404 page not found")),
            };
            answer.unwrap_or_else(|refusal| refusal)
        })
    }
}

impl ResolverRoutes {
    fn ready(&self) -> Answer {
        let missing = self.resolver.missing();
        if missing.is_empty() {
            ok()
        } else {
            text(StatusCode::SERVICE_UNAVAILABLE, &missing.join("\n"))
        }
    }

    async fn told(&self, asked: &Asked) -> Result<Answer, Answer> {
        only(&Method::GET, asked)?;
        self.let_in(asked).await?;
        Ok(match asked.uri().path() {
            QUEUE_STATUS => {
                let query = parameters(asked.uri().query().unwrap_or_default());
                let value = |name: &str| query.get(name).cloned().unwrap_or_default();
                let holds = self.resolver.holds(&value("namespace"), &value("service"));
                json(&QueueStatus {
                    queue_status: holds.into(),
                })
            }
            CRD_CACHE_STATUS => json(&self.resolver.directory().listed()),
            _ => json(&self.resolver.activity()),
        })
    }

    async fn done(&self, asked: &Asked) -> Result<Answer, Answer> {
        only(&Method::POST, asked)?;
        self.let_in(asked).await?;
        if asked.uri().path() == PROBE {
            let probe: Probe = read(asked)?;
            if probe.count > MOST_PROBES {
                let words = format!("count is at most {MOST_PROBES}");
                return Err(text(StatusCode::BAD_REQUEST, &words));
            }
            return Ok(json(&self.resolver.probe(probe).await));
        }
        let took: Took = read(asked)?;
        if took.sources.len() > MOST_SOURCES {
            let words = format!("there are at most {MOST_SOURCES} sources");
            return Err(text(StatusCode::BAD_REQUEST, &words));
        }
        Ok(json(&self.resolver.taken(took)))
    }

    async fn let_in(&self, asked: &Asked) -> Result<(), Answer> {
        let passed = self.door.pass(asked.headers()).await;
        passed.map_err(|reason| denied(&reason))
    }
}

/// Without a line break, as the original answers.
fn ok() -> Answer {
    let body = Pages::from("ok".to_owned());
    typed(Response::new(body), "text/plain; charset=utf-8")
}

/// Names of namespaces and Services need no escapes, so none are read.
fn parameters(query: &str) -> HashMap<String, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests;
