//! Reads the facts, and carries the decision out.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service as KubeService};
use kube::ResourceExt;
use neap_kit::{
    apply::Error,
    controller::Outcome,
    key::Key,
    manager::Service,
    planted,
    site::Site,
    watch::{Cache, Ended},
    wiring::{ECHO, Tools, Wiring},
};

use super::decide::{WRITER, decide};
use crate::{
    service_pods::{Selection, Triggers, note_trigger, selector},
    workload::Made,
};

/// The controller of Endpoints.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, "endpoint-controller");
    let services = wiring.kept::<KubeService>()?;
    let pods = wiring.read()?;
    let endpoints = wiring.read::<Endpoints>()?;
    let selection = Selection::new(&pods, &services);
    let selected = selection.clone();
    wiring.follow(&pods, move |change, trigger| selected.tell(change, trigger));
    let known = services.clone();
    wiring.follow(&endpoints, move |change, trigger| {
        // What somebody wrote without a Service is his own; what we wrote outlives none.
        let ours = change.object().labels().contains_key(WRITER);
        if ours || known.get(&change.key()).is_some() {
            trigger.changed(change.key());
        }
    });
    let work = Work {
        selection,
        triggers: Triggers::default(),
        tools: wiring.tools(),
        services,
        endpoints,
    };
    Ok(wiring.service(work, Work::reconcile))
}

struct Work {
    services: Cache<KubeService>,
    endpoints: Cache<Endpoints>,
    selection: Selection,
    triggers: Triggers,
    tools: Tools,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let former = self.endpoints.get(&key);
        let Some(service) = self.services.get(&key) else {
            self.triggers.forget(&key);
            return self.clear(former.as_deref()).await;
        };
        if selector(&service).is_none() {
            return Ok(Outcome::Settled);
        }
        let pods = self.selection.pods(&service);
        let trigger = self.triggers.since(&service, &pods);
        let pods: Vec<&Pod> = pods.iter().map(|pod| &**pod).collect();
        let mut wanted = decide(&service, &pods, former.as_deref());
        if former.as_deref() == Some(&wanted) {
            return Ok(Outcome::Settled);
        }
        let leaving = service.metadata.deletion_timestamp.is_some();
        if leaving && former.is_none() {
            return Ok(Outcome::Settled);
        }
        self.tools.confirm(&*service, former.is_none()).await?;
        note_trigger(&mut wanted.metadata, trigger);
        match former {
            None => {
                let mut made = Made::default();
                made.add(&wanted, self.tools.hand.create(&wanted).await?.as_ref());
                made.shown(&self.endpoints).await?;
            }
            Some(_) if planted!(EndpointsOrNot) => drop(self.tools.hand.replace(&wanted).await),
            Some(_) => drop(self.tools.hand.replace(&wanted).await?),
        }
        Ok(Outcome::Settled)
    }

    /// Endpoints go with their Service, though it does not own them.
    async fn clear(&self, endpoints: Option<&Endpoints>) -> Result<Outcome, Error> {
        let Some(endpoints) = endpoints else {
            return Ok(Outcome::Gone);
        };
        let asked = self.tools.hand.remove(endpoints, None).await;
        planted!(EndpointsLeft => return Ok(Outcome::Gone));
        asked?;
        // They are gone once the watch says so, not before.
        Ok(Outcome::Again(ECHO))
    }
}
