//! Reads the facts, and carries the decision out.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service as KubeService};
use kube::ResourceExt;
use neap_kit::{
    apply::{Error, Hand},
    controller::{Options, Outcome},
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended},
};

use super::decide::{WRITER, decide};
use crate::service_pods::{Selection, selector};

const NAME: &str = "endpoint-controller";

/// The controller of Endpoints.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let services = site.all::<KubeService>()?;
    let pods = site.all::<Pod>()?;
    let endpoints = site.all::<Endpoints>()?;
    let controller = site.controller(Options::new(NAME));
    let selection = Selection::new(&pods, &services);
    let work = Arc::new(Work {
        selection: selection.clone(),
        hand: site.hand(NAME),
        services: services.clone(),
        endpoints: endpoints.clone(),
    });
    let trigger = controller.trigger();
    services.follow(move |change| trigger.changed(change.key()));
    let trigger = controller.trigger();
    pods.follow(move |change| selection.tell(change, &trigger));
    let trigger = controller.trigger();
    let known = services.clone();
    endpoints.follow(move |change| {
        // What somebody wrote without a Service is his own; what we wrote outlives none.
        let ours = change.object().labels().contains_key(WRITER);
        if ours || known.get(&change.key()).is_some() {
            trigger.changed(change.key());
        }
    });
    Ok(Service::new(NAME, move |stop| async move {
        let known = async {
            services.synced().await;
            pods.synced().await;
            endpoints.synced().await;
        };
        let reconcile = move |key| work.clone().reconcile(key);
        controller.run_once_known(known, reconcile, stop).await;
    }))
}

struct Work {
    services: Cache<KubeService>,
    endpoints: Cache<Endpoints>,
    selection: Selection,
    hand: Hand,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let former = self.endpoints.get(&key);
        let Some(service) = self.services.get(&key) else {
            return self.clear(former.as_deref()).await;
        };
        if selector(&service).is_none() {
            return Ok(Outcome::Settled);
        }
        let pods = self.selection.pods(&service);
        let pods: Vec<&Pod> = pods.iter().map(|pod| &**pod).collect();
        let wanted = decide(&service, &pods, former.as_deref());
        match former {
            None => drop(self.hand.create(&wanted).await?),
            Some(former) if *former != wanted => drop(self.hand.replace(&wanted).await?),
            Some(_) => {}
        }
        Ok(Outcome::Settled)
    }

    /// Endpoints go with their Service, though it does not own them.
    async fn clear(&self, endpoints: Option<&Endpoints>) -> Result<Outcome, Error> {
        if let Some(endpoints) = endpoints {
            self.hand.remove(endpoints, None).await?;
        }
        Ok(Outcome::Gone)
    }
}
