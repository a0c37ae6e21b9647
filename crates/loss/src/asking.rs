//! Resolvers as the operator asks them for proofs. What it asks and what it makes of the answers is
//! its own affair; only the HTTP between the two is left out.

use std::{net::SocketAddr, sync::Arc};

use futures::future::BoxFuture;
use neap_idle::{
    api::wire::{Activity, Probe, Probed, Taken, Took},
    operator::{asking::Unanswered, http::Resolver as _, prove::Ask, resolvers::Silent},
    resolver::inside::Inside,
};

use crate::resolvers::Row;

impl Row {
    fn asked(&self, resolver: SocketAddr) -> Result<Arc<Inside>, Silent> {
        self.inside(resolver.ip()).ok_or_else(|| {
            let why = Unanswered::Failed("nobody is there".to_owned());
            Silent { resolver, why }
        })
    }
}

impl Ask for Row {
    fn probe<'a>(
        &'a self,
        resolver: SocketAddr,
        probe: &'a Probe,
    ) -> BoxFuture<'a, Result<Probed, Silent>> {
        Box::pin(async move { Ok(self.asked(resolver)?.probe(probe.clone()).await) })
    }

    fn taken<'a>(
        &'a self,
        resolver: SocketAddr,
        asked: &'a Took,
    ) -> BoxFuture<'a, Result<Taken, Silent>> {
        Box::pin(async move { Ok(self.asked(resolver)?.taken(asked.clone())) })
    }

    fn activity(&self, resolver: SocketAddr) -> BoxFuture<'_, Result<Activity, Silent>> {
        Box::pin(async move { Ok(self.asked(resolver)?.activity()) })
    }
}
