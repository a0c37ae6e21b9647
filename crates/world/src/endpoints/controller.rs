//! Reads the facts and executes the decision.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use kube::ResourceExt;
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, OWN_WRITE_TIMEOUT, Tools},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    planted,
    watch::{Cache, WatchesStopped},
};

use super::decide::{MANAGED_BY, decide};
use crate::{
    service_pods::{ServicePodIndex, TriggerTimeTracker, selector, set_trigger_time},
    workload::CreateResults,
};

pub fn component(context: &Context) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "endpoint-controller");
    let services = builder.primary::<Service>()?;
    let pods = builder.cache()?;
    let endpoints = builder.cache::<Endpoints>()?;
    let selection = ServicePodIndex::new(&pods, &services);
    let selected = selection.clone();
    builder.on_change(&pods, move |change, enqueuer| {
        selected.enqueue_for_change(change, enqueuer);
    });
    let cached = services.clone();
    builder.on_change(&endpoints, move |change, enqueuer| {
        // Endpoints that a user created without a Service are not touched; those that this
        // controller wrote are deleted with their Service.
        let ours = change.object().labels().contains_key(MANAGED_BY);
        if ours || cached.get(&change.key()).is_some() {
            enqueuer.enqueue(change.key());
        }
    });
    let reconciler = EndpointsReconciler {
        selection,
        triggers: TriggerTimeTracker::default(),
        tools: builder.tools(),
        services,
        endpoints,
    };
    Ok(builder.build(reconciler, EndpointsReconciler::reconcile))
}

struct EndpointsReconciler {
    services: Cache<Service>,
    endpoints: Cache<Endpoints>,
    selection: ServicePodIndex,
    triggers: TriggerTimeTracker,
    tools: Tools,
}

impl EndpointsReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let former = self.endpoints.get(&key);
        let Some(service) = self.services.get(&key) else {
            self.triggers.forget(&key);
            return self.clear(former.as_deref()).await;
        };
        if selector(&service).is_none() {
            return Ok(Outcome::Done);
        }
        let pods = self.selection.pods(&service);
        let trigger_time = self.triggers.since(&service, &pods);
        let pods: Vec<&Pod> = pods.iter().map(|pod| &**pod).collect();
        let mut wanted = decide(&service, &pods, former.as_deref());
        if former.as_deref() == Some(&wanted) {
            return Ok(Outcome::Done);
        }
        let leaving = service.metadata.deletion_timestamp.is_some();
        if leaving && former.is_none() {
            return Ok(Outcome::Done);
        }
        self.tools.confirm(&*service, former.is_none()).await?;
        set_trigger_time(&mut wanted.metadata, trigger_time);
        match former {
            None => {
                let mut made = CreateResults::default();
                made.add(&wanted, self.tools.writer.create(&wanted).await?.as_ref());
                made.wait_until_cached(&self.endpoints).await?;
            }
            Some(_) if planted!(EndpointsOrNot) => drop(self.tools.writer.replace(&wanted).await),
            Some(_) => drop(self.tools.writer.replace(&wanted).await?),
        }
        Ok(Outcome::Done)
    }

    /// Deletes the Endpoints of a deleted Service, which does not own them.
    async fn clear(&self, endpoints: Option<&Endpoints>) -> Result<Outcome, Error> {
        let Some(endpoints) = endpoints else {
            return Ok(Outcome::Gone);
        };
        let removed = self.tools.writer.remove(endpoints, None).await;
        planted!(EndpointsLeft => return Ok(Outcome::Gone));
        removed?;
        // They are gone only once the watch reports it.
        Ok(Outcome::RequeueAfter(OWN_WRITE_TIMEOUT))
    }
}
