//! The client with which operators call the internal port of resolvers.

use std::{net::SocketAddr, sync::Arc};

use http::{Method, StatusCode};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    api::wire::{
        ACTIVITY, AcceptedQuery, AcceptedReport, ActivityReport, PROBE, ProbeReport, ProbeRequest,
        TAKEN,
    },
    http_api::{ApiClient, CallError},
};

/// A call to a resolver that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{resolver}: {error}")]
pub struct ResolverCallError {
    /// The internal port of the resolver.
    pub resolver: SocketAddr,
    /// Why it failed.
    pub error: CallError,
}

impl ResolverCallError {
    /// Whether the resolver has no such route. Ours have all that an operator calls; a resolver of
    /// KubeElasti responds so.
    pub fn is_unknown_route(&self) -> bool {
        matches!(self.error, CallError::Status(StatusCode::NOT_FOUND, _))
    }
}

/// Lists the internal ports of all resolvers that run, ready or not.
pub type ListResolvers = Arc<dyn Fn() -> Vec<SocketAddr> + Send + Sync>;

/// A client of the internal port of resolvers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ResolverClient(ApiClient);

impl ResolverClient {
    /// A client that calls with the token of `client`.
    pub fn new(client: ApiClient) -> Self {
        Self(client)
    }

    /// Has a resolver open connections.
    pub async fn probe(
        &self,
        resolver: SocketAddr,
        probe: &ProbeRequest,
    ) -> Result<ProbeReport, ResolverCallError> {
        self.call(resolver, Method::POST, PROBE, Some(probe)).await
    }

    /// Which of these connections a resolver accepted.
    pub async fn accepted(
        &self,
        resolver: SocketAddr,
        query: &AcceptedQuery,
    ) -> Result<AcceptedReport, ResolverCallError> {
        self.call(resolver, Method::POST, TAKEN, Some(query)).await
    }

    /// The requests that a resolver received.
    pub async fn activity(
        &self,
        resolver: SocketAddr,
    ) -> Result<ActivityReport, ResolverCallError> {
        self.call(resolver, Method::GET, ACTIVITY, None::<&AcceptedQuery>)
            .await
    }

    async fn call<Q: Serialize, A: DeserializeOwned>(
        &self,
        resolver: SocketAddr,
        method: Method,
        path: &str,
        body: Option<&Q>,
    ) -> Result<A, ResolverCallError> {
        let address = resolver.to_string();
        let response = self.0.call(&address, method, path, body).await;
        response.map_err(|error| ResolverCallError { resolver, error })
    }
}
