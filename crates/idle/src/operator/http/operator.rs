//! What the operator answers.

use futures::future::BoxFuture;
use http::{HeaderValue, Method, StatusCode, header::RETRY_AFTER};
use neap_kit::{key::Key, process::Process, watch::Cache};

use super::{
    Answer, Answers, Asked,
    answer::{denied, json, metrics, only, read, text},
};
use crate::{
    api::{
        ElastiService,
        wire::{CRD_CACHE, Directory, INCOMING_REQUEST, IncomingRequest, Received},
    },
    operator::tokens::Door,
    wake::{Cause, Waker, Whom},
};

/// What the operator answers, whether it leads or not.
#[derive(Debug)]
pub struct OperatorRoutes {
    /// Who may ask.
    pub door: Door,
    /// Wakes what is asked for.
    pub waker: Waker,
    /// The services that may sleep.
    pub services: Cache<ElastiService>,
    /// What is counted.
    pub process: Process,
}

impl Answers for OperatorRoutes {
    fn answer<'a>(&'a self, asked: &'a Asked) -> BoxFuture<'a, Answer> {
        Box::pin(async {
            let answer = match asked.uri().path() {
                INCOMING_REQUEST => self.incoming(asked).await,
                CRD_CACHE => self.directory(asked).await,
                "/metrics" => only(&Method::GET, asked).map(|()| metrics(self.process.metrics())),
                _ => Ok(text(StatusCode::NOT_FOUND, "404 page not found")),
            };
            answer.unwrap_or_else(|refusal| refusal)
        })
    }
}

impl OperatorRoutes {
    /// The answer does not wait for the wake, and is the same for a service that nobody knows: a
    /// resolver goes by what the watches show it.
    async fn incoming(&self, asked: &Asked) -> Result<Answer, Answer> {
        only(&Method::POST, asked)?;
        self.let_in(asked).await?;
        let IncomingRequest { svc, namespace, .. } = read(asked)?;
        if svc.is_empty() || namespace.is_empty() {
            return Ok(json(&Received::default()));
        }
        let whom = Whom::Service(Key::new(&namespace, &svc));
        self.waker.wake(whom, Cause::Request).map_err(|full| {
            let mut answer = text(StatusCode::SERVICE_UNAVAILABLE, &full.to_string());
            let soon = HeaderValue::from_static("1");
            answer.headers_mut().insert(RETRY_AFTER, soon);
            answer
        })?;
        Ok(json(&Received::default()))
    }

    async fn directory(&self, asked: &Asked) -> Result<Answer, Answer> {
        only(&Method::GET, asked)?;
        self.let_in(asked).await?;
        let services = self.services.list("");
        Ok(json(&Directory::of(services.iter().map(|one| &**one))))
    }

    async fn let_in(&self, asked: &Asked) -> Result<(), Answer> {
        let passed = self.door.pass(asked.headers()).await;
        passed.map_err(|reason| denied(&reason))
    }
}

#[cfg(test)]
mod tests;
