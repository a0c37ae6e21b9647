//! Answers the requests of the internal port from the state of the resolver.

use std::{fmt, net::SocketAddr, time::Duration};

use futures::future::BoxFuture;
use neap_kit::{key::Key, manager::Health, process::Process, telemetry::ChunkedText, watch::Cache};

use super::{Resolver, internal_routes::ResolverState, probe::open_connections};
use crate::api::{
    ElastiService,
    wire::{
        AcceptedQuery, AcceptedReport, ActivityReport, Directory, ProbeReport, ProbeRequest,
        ServiceActivity,
    },
};

/// The state of a resolver that its internal port serves.
pub struct InternalApi {
    /// The resolver.
    pub resolver: Resolver,
    /// The caches of ElastiServices in the watched namespaces.
    pub services: Vec<Cache<ElastiService>>,
    /// The health of the process.
    pub health: Health,
    /// The metrics of the process.
    pub process: Process,
}

impl ResolverState for InternalApi {
    fn holds(&self, namespace: &str, service: &str) -> bool {
        let queued = self
            .resolver
            .held_requests
            .queue_size(&Key::new(namespace, service));
        queued.requests > 0
    }

    fn directory(&self) -> Directory {
        let all: Vec<_> = self.services.iter().flat_map(|one| one.list("")).collect();
        Directory::of(all.iter().map(|one| &**one))
    }

    fn not_ready(&self) -> Vec<String> {
        self.health.not_ready()
    }

    fn probe(&self, probe: ProbeRequest) -> BoxFuture<'_, ProbeReport> {
        Box::pin(async move {
            let address = SocketAddr::new(probe.address, probe.port);
            let count = usize::try_from(probe.count).unwrap_or(usize::MAX);
            let tried = open_connections(&self.resolver, address, count).await;
            ProbeReport {
                sources: tried.sources,
                failed: u32::try_from(tried.failed).unwrap_or(u32::MAX),
            }
        })
    }

    fn accepted(&self, query: AcceptedQuery) -> AcceptedReport {
        let all = &self.resolver.accepted;
        let lately = Duration::from_millis(query.lately);
        AcceptedReport {
            taken: all.accepted_among(&query.sources),
            strangers: all.unexpected_sources(&query.sources, &query.ports, lately),
        }
    }

    fn activity(&self) -> ActivityReport {
        let activities = self.resolver.activity.all();
        let queued = self.resolver.held_requests.queue_sizes();
        let services = activities.into_iter().map(|(key, recorded)| {
            let held = queued.get(&key).map_or(0, |queued| queued.requests);
            let activity = ServiceActivity {
                last: recorded.last,
                held: held as u64,
                requests: recorded.requests,
                cold: recorded.cold,
            };
            (key.to_string(), activity)
        });
        ActivityReport {
            services: services.collect(),
        }
    }

    fn metrics(&self) -> ChunkedText {
        self.process.chunked_metrics()
    }
}

impl fmt::Debug for InternalApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside")
            .field("resolver", &self.resolver)
            .finish_non_exhaustive()
    }
}
