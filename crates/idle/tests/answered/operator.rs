//! The operator, and its wakes.

use std::sync::Arc;

use futures::future::BoxFuture;
use kube::ResourceExt;
use neap_idle::{
    api::ElastiService,
    service::{
        facts::Patience,
        ports::Range,
        prove::{Prover, Search},
        run::{Settings, service},
        verdict::{Because, Verdict, Verdicts},
    },
    wake::WakeService,
};
use neap_kit::{controller::Trigger, key::Key, manager::Service, site::Site, watch::Ended};

use crate::town::Town;

/// Says what the triggers say.
pub(crate) const SAYS: &str = "test/says";

pub(crate) fn services(site: &Site, town: &Arc<Town>) -> Result<Vec<Service>, Ended> {
    let settings = Settings {
        namespace: "default".to_owned(),
        resolver_namespace: "default".to_owned(),
        resolver_service: "resolver".to_owned(),
        range: Range::default(),
        patience: Patience::default(),
    };
    let (waker, wakes) = WakeService::of_all(site)?;
    *town.operator.lock() = Some(waker);
    let operator = service(site, settings, Arc::new(Written), Arc::new(Always))?;
    Ok(vec![operator, wakes.into()])
}

/// What the object itself says: a change of it is seen as any other is.
#[derive(Debug)]
struct Written;

impl Verdicts for Written {
    fn of(&self, service: &ElastiService) -> Verdict {
        let says = service.annotations().get(SAYS);
        if says.is_some_and(|word| word == "idle") {
            Verdict::Idle(Because::new("Idle", "nobody asks"))
        } else {
            Verdict::Unknown(Because::new("Unknown", "nobody can say"))
        }
    }

    fn anew<'a>(&'a self, service: &'a ElastiService) -> BoxFuture<'a, Verdict> {
        Box::pin(async { self.of(service) })
    }

    fn tell(&self, _: Trigger<Key>) {}
}

#[derive(Debug)]
struct Always;

impl Prover for Always {
    fn prove<'a>(&'a self, _: &'a Search) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }
}
