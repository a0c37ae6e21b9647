//! A resolver as its internal port sees it.

use std::{fmt, net::SocketAddr, time::Duration};

use futures::future::BoxFuture;
use neap_kit::{key::Key, manager::Health, process::Process, telemetry::Pages, watch::Cache};

use super::{Resolver, prove::prove};
use crate::{
    api::{
        ElastiService,
        wire::{Activity, Directory, Probe, Probed, ServiceActivity, Taken, Took},
    },
    operator::http,
};

/// What the internal port tells of a resolver.
pub struct Inside {
    /// The resolver.
    pub resolver: Resolver,
    /// The services that it knows of, in each namespace that it looks at.
    pub services: Vec<Cache<ElastiService>>,
    /// How the process is.
    pub health: Health,
    /// What it counts.
    pub process: Process,
}

impl http::Resolver for Inside {
    fn holds(&self, namespace: &str, service: &str) -> bool {
        let queued = self.resolver.holds.queued(&Key::new(namespace, service));
        queued.requests > 0
    }

    fn directory(&self) -> Directory {
        let all: Vec<_> = self.services.iter().flat_map(|one| one.list("")).collect();
        Directory::of(all.iter().map(|one| &**one))
    }

    fn missing(&self) -> Vec<String> {
        self.health.missing()
    }

    fn probe(&self, probe: Probe) -> BoxFuture<'_, Probed> {
        Box::pin(async move {
            let address = SocketAddr::new(probe.address, probe.port);
            let count = usize::try_from(probe.count).unwrap_or(usize::MAX);
            let tried = prove(&self.resolver, address, count).await;
            Probed {
                sources: tried.sources,
                failed: u32::try_from(tried.failed).unwrap_or(u32::MAX),
            }
        })
    }

    fn taken(&self, asked: Took) -> Taken {
        let all = &self.resolver.taken;
        let lately = Duration::from_millis(asked.lately);
        Taken {
            taken: all.of(&asked.sources),
            strangers: all.strangers(&asked.sources, &asked.ports, lately),
        }
    }

    fn activity(&self) -> Activity {
        let asked = self.resolver.activity.all();
        let queued = self.resolver.holds.all_queued();
        let services = asked.into_iter().map(|(key, asked)| {
            let held = queued.get(&key).map_or(0, |queued| queued.requests);
            let activity = ServiceActivity {
                last: asked.last,
                held: held as u64,
                requests: asked.requests,
                cold: asked.cold,
            };
            (key.to_string(), activity)
        });
        Activity {
            services: services.collect(),
        }
    }

    fn metrics(&self) -> Pages {
        self.process.pages()
    }
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside")
            .field("resolver", &self.resolver)
            .finish_non_exhaustive()
    }
}
