//! The calls to resolvers that proofs need.

use std::{fmt, net::SocketAddr};

use futures::future::BoxFuture;

use crate::{
    api::wire::{AcceptedQuery, AcceptedReport, ActivityReport, ProbeReport, ProbeRequest},
    resolver::client::{ResolverCallError, ResolverClient},
};

/// The calls to resolvers.
pub trait ResolverApi: fmt::Debug + Send + Sync {
    /// Has a resolver open connections.
    fn probe<'a>(
        &'a self,
        resolver: SocketAddr,
        probe: &'a ProbeRequest,
    ) -> BoxFuture<'a, Result<ProbeReport, ResolverCallError>>;

    /// Which connections a resolver accepted.
    fn accepted<'a>(
        &'a self,
        resolver: SocketAddr,
        query: &'a AcceptedQuery,
    ) -> BoxFuture<'a, Result<AcceptedReport, ResolverCallError>>;

    /// The requests that a resolver received.
    fn activity(
        &self,
        resolver: SocketAddr,
    ) -> BoxFuture<'_, Result<ActivityReport, ResolverCallError>>;
}

impl ResolverApi for ResolverClient {
    fn probe<'a>(
        &'a self,
        resolver: SocketAddr,
        probe: &'a ProbeRequest,
    ) -> BoxFuture<'a, Result<ProbeReport, ResolverCallError>> {
        Box::pin(Self::probe(self, resolver, probe))
    }

    fn accepted<'a>(
        &'a self,
        resolver: SocketAddr,
        query: &'a AcceptedQuery,
    ) -> BoxFuture<'a, Result<AcceptedReport, ResolverCallError>> {
        Box::pin(Self::accepted(self, resolver, query))
    }

    fn activity(
        &self,
        resolver: SocketAddr,
    ) -> BoxFuture<'_, Result<ActivityReport, ResolverCallError>> {
        Box::pin(Self::activity(self, resolver))
    }
}
