//! The resolvers, as the operator requests proofs from them. Requests and their evaluation are
//! those of the operator; only the HTTP between the two is left out.

use std::{net::SocketAddr, sync::Arc};

use futures::future::BoxFuture;
use neap_idle::{
    api::wire::{AcceptedQuery, AcceptedReport, ActivityReport, ProbeReport, ProbeRequest},
    http_api::CallError,
    operator::prove::ResolverApi,
    resolver::{
        client::ResolverCallError, internal_api::InternalApi, internal_routes::ResolverState,
    },
};

use crate::resolvers::ResolverSet;

impl ResolverSet {
    fn asked(&self, resolver: SocketAddr) -> Result<Arc<InternalApi>, ResolverCallError> {
        self.internal_api(resolver.ip()).ok_or_else(|| {
            let error = CallError::Failed("there is no such resolver".to_owned());
            ResolverCallError { resolver, error }
        })
    }
}

impl ResolverApi for ResolverSet {
    fn probe<'a>(
        &'a self,
        resolver: SocketAddr,
        probe: &'a ProbeRequest,
    ) -> BoxFuture<'a, Result<ProbeReport, ResolverCallError>> {
        Box::pin(async move { Ok(self.asked(resolver)?.probe(probe.clone()).await) })
    }

    fn accepted<'a>(
        &'a self,
        resolver: SocketAddr,
        query: &'a AcceptedQuery,
    ) -> BoxFuture<'a, Result<AcceptedReport, ResolverCallError>> {
        Box::pin(async move { Ok(self.asked(resolver)?.accepted(query.clone())) })
    }

    fn activity(
        &self,
        resolver: SocketAddr,
    ) -> BoxFuture<'_, Result<ActivityReport, ResolverCallError>> {
        Box::pin(async move { Ok(self.asked(resolver)?.activity()) })
    }
}
