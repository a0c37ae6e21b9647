//! The routes of a resolver's internal port: those of KubeElasti with their methods, statuses and bodies,
//! and ours beside them.

use std::{collections::HashMap, fmt, sync::Arc};

use futures::future::BoxFuture;
use http::{Method, Response, StatusCode};
use neap_kit::telemetry::ChunkedText;

use crate::{
    api::wire::{
        ACTIVITY, AcceptedQuery, AcceptedReport, ActivityReport, CRD_CACHE_STATUS, Directory,
        PROBE, ProbeReport, ProbeRequest, QUEUE_STATUS, QueueStatus, TAKEN,
    },
    auth::Authenticator,
    http_api::{
        ApiRequest, ApiResponse, Handler, denied, json, metrics, parse_body, require_method, text,
        with_content_type,
    },
};

/// The largest number of connections in one probe; more prove nothing more.
const MAX_PROBES: u32 = 64;
/// The largest number of sources in one query; no probe has more.
const MAX_SOURCES: usize = 4096;

/// The state of a resolver that its internal port shows.
pub trait ResolverState: fmt::Debug + Send + Sync {
    /// Whether it holds requests for this Service.
    fn holds(&self, namespace: &str, service: &str) -> bool;
    /// The services that it knows, without secrets.
    fn directory(&self) -> Directory;
    /// What it still waits for before it is ready; empty once it is.
    fn not_ready(&self) -> Vec<String>;
    /// Opens connections and reports how many were accepted.
    fn probe(&self, probe: ProbeRequest) -> BoxFuture<'_, ProbeReport>;
    /// Which of these connections it accepted.
    fn accepted(&self, query: AcceptedQuery) -> AcceptedReport;
    /// The requests that it received.
    fn activity(&self) -> ActivityReport;
    /// Its metrics.
    fn metrics(&self) -> ChunkedText;
}

/// The routes of the internal port.
#[derive(Debug)]
pub struct InternalRoutes {
    /// Admits callers.
    pub authenticator: Authenticator,
    /// The resolver.
    pub resolver: Arc<dyn ResolverState>,
}

impl Handler for InternalRoutes {
    fn handle<'a>(&'a self, request: &'a ApiRequest) -> BoxFuture<'a, ApiResponse> {
        Box::pin(async {
            let get = || require_method(&Method::GET, request);
            let response = match request.uri().path() {
                "/healthz" => get().map(|()| ok()),
                "/readyz" => get().map(|()| self.ready()),
                "/metrics" => get().map(|()| metrics(self.resolver.metrics())),
                QUEUE_STATUS | CRD_CACHE_STATUS | ACTIVITY => self.query(request).await,
                PROBE | TAKEN => self.command(request).await,
                _ => Ok(text(StatusCode::NOT_FOUND, "404 page not found")),
            };
            response.unwrap_or_else(|refusal| refusal)
        })
    }
}

impl InternalRoutes {
    fn ready(&self) -> ApiResponse {
        let missing = self.resolver.not_ready();
        if missing.is_empty() {
            ok()
        } else {
            text(StatusCode::SERVICE_UNAVAILABLE, &missing.join("\n"))
        }
    }

    async fn query(&self, request: &ApiRequest) -> Result<ApiResponse, ApiResponse> {
        require_method(&Method::GET, request)?;
        self.authenticate(request).await?;
        Ok(match request.uri().path() {
            QUEUE_STATUS => {
                let query = parameters(request.uri().query().unwrap_or_default());
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

    async fn command(&self, request: &ApiRequest) -> Result<ApiResponse, ApiResponse> {
        require_method(&Method::POST, request)?;
        self.authenticate(request).await?;
        if request.uri().path() == PROBE {
            let probe: ProbeRequest = parse_body(request)?;
            if probe.count > MAX_PROBES {
                let message = format!("count is at most {MAX_PROBES}");
                return Err(text(StatusCode::BAD_REQUEST, &message));
            }
            return Ok(json(&self.resolver.probe(probe).await));
        }
        let query: AcceptedQuery = parse_body(request)?;
        if query.sources.len() > MAX_SOURCES {
            let message = format!("there are at most {MAX_SOURCES} sources");
            return Err(text(StatusCode::BAD_REQUEST, &message));
        }
        Ok(json(&self.resolver.accepted(query)))
    }

    async fn authenticate(&self, request: &ApiRequest) -> Result<(), ApiResponse> {
        let checked = self.authenticator.check(request.headers()).await;
        checked.map_err(|reason| denied(&reason))
    }
}

/// Without a line break, as KubeElasti responds.
fn ok() -> ApiResponse {
    let body = ChunkedText::from("ok".to_owned());
    with_content_type(Response::new(body), "text/plain; charset=utf-8")
}

/// Names of namespaces and Services need no escapes, so none are decoded.
fn parameters(query: &str) -> HashMap<String, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests;
