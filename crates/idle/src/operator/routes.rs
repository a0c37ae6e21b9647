//! The routes of the operator: those of KubeElasti with their methods, statuses and bodies, and
//! `/metrics`.

use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderValue, Method, StatusCode, header::RETRY_AFTER};
use neap_kit::{clock::Clock, key::Key, process::Process, watch::Cache};

use crate::{
    api::{
        ElastiService,
        wire::{
            AND_WAIT, CRD_CACHE, Directory, INCOMING_REQUEST, IncomingRequest, IncomingRequestReply,
        },
    },
    auth::Authenticator,
    http_api::{
        ApiRequest, ApiResponse, Handler, denied, json, metrics, parse_body, require_method, text,
    },
    wake::{PendingWake, WakeHandle, WakeOutcome},
};

/// The routes of an operator, whether it leads or not.
#[derive(Debug)]
pub struct OperatorRoutes {
    /// Admits callers.
    pub authenticator: Authenticator,
    /// Wakes services.
    pub waker: WakeHandle,
    /// The services that may sleep.
    pub services: Cache<ElastiService>,
    /// The process, for its metrics.
    pub process: Process,
    /// Measures how long a response waits for a wake.
    pub clock: Clock,
    /// The longest that a response waits for a wake.
    pub wake_timeout: Duration,
}

impl Handler for OperatorRoutes {
    fn handle<'a>(&'a self, request: &'a ApiRequest) -> BoxFuture<'a, ApiResponse> {
        Box::pin(async {
            let response = match request.uri().path() {
                INCOMING_REQUEST => self.incoming_request(request).await,
                CRD_CACHE => self.directory(request).await,
                "/metrics" => require_method(&Method::GET, request)
                    .map(|()| metrics(self.process.chunked_metrics())),
                _ => Ok(text(StatusCode::NOT_FOUND, "404 page not found")),
            };
            response.unwrap_or_else(|refusal| refusal)
        })
    }
}

impl OperatorRoutes {
    /// A resolver of KubeElasti gets its response before the wake is done, and the same one for a service
    /// that is not known. Our resolvers request the outcome, so that they can pass it to the clients that
    /// they hold and retry soon.
    async fn incoming_request(&self, request: &ApiRequest) -> Result<ApiResponse, ApiResponse> {
        require_method(&Method::POST, request)?;
        self.authenticate(request).await?;
        let IncomingRequest { svc, namespace, .. } = parse_body(request)?;
        if svc.is_empty() || namespace.is_empty() {
            return Ok(json(&IncomingRequestReply::default()));
        }
        let key = Key::new(&namespace, &svc);
        let wake = self.waker.wake(key.clone());
        let wake = wake.map_err(|full| {
            let mut response = text(StatusCode::SERVICE_UNAVAILABLE, &full.to_string());
            let seconds = HeaderValue::from_static("1");
            response.headers_mut().insert(RETRY_AFTER, seconds);
            response
        })?;
        if request.uri().query() == Some(AND_WAIT) {
            self.wake_response(&key, wake).await
        } else {
            Ok(json(&IncomingRequestReply::default()))
        }
    }

    /// The outcome of a wake. A wake that outlasts the timeout continues, and has not failed.
    async fn wake_response(
        &self,
        key: &Key,
        wake: PendingWake,
    ) -> Result<ApiResponse, ApiResponse> {
        let mut response = json(&IncomingRequestReply::default());
        match self.clock.within(self.wake_timeout, wake.outcome()).await {
            Some(WakeOutcome::Woken { .. } | WakeOutcome::Awake { .. }) => Ok(response),
            None => {
                *response.status_mut() = StatusCode::ACCEPTED;
                Ok(response)
            }
            Some(WakeOutcome::Unknown) => {
                let message = format!("no ElastiService is known here for the Service {key}");
                Err(text(StatusCode::NOT_FOUND, &message))
            }
            Some(WakeOutcome::Failed(error)) => Err(text(StatusCode::BAD_GATEWAY, &error)),
        }
    }

    async fn directory(&self, request: &ApiRequest) -> Result<ApiResponse, ApiResponse> {
        require_method(&Method::GET, request)?;
        self.authenticate(request).await?;
        let services = self.services.list("");
        Ok(json(&Directory::of(services.iter().map(|one| &**one))))
    }

    async fn authenticate(&self, request: &ApiRequest) -> Result<(), ApiResponse> {
        let checked = self.authenticator.check(request.headers()).await;
        checked.map_err(|reason| denied(&reason))
    }
}

#[cfg(test)]
mod tests;
