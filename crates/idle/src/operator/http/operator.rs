//! What the operator answers.

use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderValue, Method, StatusCode, header::RETRY_AFTER};
use neap_kit::{clock::Clock, key::Key, process::Process, watch::Cache};

use super::{
    Answer, Answers, Asked,
    answer::{denied, json, metrics, only, read, text},
};
use crate::{
    api::{
        ElastiService,
        wire::{AND_WAIT, CRD_CACHE, Directory, INCOMING_REQUEST, IncomingRequest, Received},
    },
    operator::tokens::Door,
    wake::{Outcome, Pending, Waker},
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
    /// Goes on while somebody waits for a wake.
    pub clock: Clock,
    /// So long they wait.
    pub patience: Duration,
}

impl Answers for OperatorRoutes {
    fn answer<'a>(&'a self, asked: &'a Asked) -> BoxFuture<'a, Answer> {
        Box::pin(async {
            let answer = match asked.uri().path() {
                INCOMING_REQUEST => self.incoming(asked).await,
                CRD_CACHE => self.directory(asked).await,
                "/metrics" => only(&Method::GET, asked).map(|()| metrics(self.process.pages())),
                _ => Ok(text(StatusCode::NOT_FOUND, "404 page not found")),
            };
            answer.unwrap_or_else(|refusal| refusal)
        })
    }
}

impl OperatorRoutes {
    /// To a resolver of KubeElasti the answer does not wait for the wake, and is the same for a
    /// service that nobody knows. One of ours is told what came of it, so that it can say so to
    /// whoever it holds, and asks again soon.
    async fn incoming(&self, asked: &Asked) -> Result<Answer, Answer> {
        only(&Method::POST, asked)?;
        self.let_in(asked).await?;
        let IncomingRequest { svc, namespace, .. } = read(asked)?;
        if svc.is_empty() || namespace.is_empty() {
            return Ok(json(&Received::default()));
        }
        let key = Key::new(&namespace, &svc);
        let wake = self.waker.wake(key.clone());
        let wake = wake.map_err(|full| {
            let mut answer = text(StatusCode::SERVICE_UNAVAILABLE, &full.to_string());
            let soon = HeaderValue::from_static("1");
            answer.headers_mut().insert(RETRY_AFTER, soon);
            answer
        })?;
        if asked.uri().query() == Some(AND_WAIT) {
            self.outcome(&key, wake).await
        } else {
            Ok(json(&Received::default()))
        }
    }

    /// What came of a wake. One that takes longer than anybody waits goes on, and has not failed.
    async fn outcome(&self, key: &Key, wake: Pending) -> Result<Answer, Answer> {
        let mut answer = json(&Received::default());
        match self.clock.within(self.patience, wake.outcome()).await {
            Some(Outcome::Woken { .. } | Outcome::Awake { .. }) => Ok(answer),
            None => {
                *answer.status_mut() = StatusCode::ACCEPTED;
                Ok(answer)
            }
            Some(Outcome::Unknown) => {
                let words = format!("no ElastiService is known here for the Service {key}");
                Err(text(StatusCode::NOT_FOUND, &words))
            }
            Some(Outcome::Failed(why)) => Err(text(StatusCode::BAD_GATEWAY, &why)),
        }
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
