//! Measures the parts of the last wake.

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{ListParams, ObjectList},
};
use neap_kit::{key::Key, why::chain};

use super::{FactSources, Facts, breakdown::breakdown};
use crate::api::Breakdown;

impl FactSources {
    /// The time that each part of the last wake took, by its pods and the resolvers; none if the API server
    /// did not respond.
    pub(in crate::elasti_service) async fn measure_wake(&self, facts: &Facts) -> Option<Breakdown> {
        let status = facts.service.status.as_ref()?;
        let wake = status.last_wake.as_ref()?;
        let namespace = facts.service.metadata.namespace.as_deref()?;
        let pods = self.pods(facts, namespace).await?;
        let service = Key::new(namespace, &facts.service.spec.service);
        let cold = self
            .prover
            .cold_start(&service, wake.time, &facts.resolvers);
        let found = breakdown(wake, &pods.items, cold.await);
        // A wake that took no measurable time counts as measured, so that it is not measured again.
        let shortest = Breakdown { ready: 1, ..found };
        Some(if found.is_whole() { found } else { shortest })
    }

    /// The pods that the Service selects. They are listed once for each wake.
    async fn pods(&self, facts: &Facts, namespace: &str) -> Option<ObjectList<Pod>> {
        let spec = facts.public.as_ref()?.spec.as_ref()?;
        let labels = spec.selector.iter().flatten();
        let labels: Vec<_> = labels
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), namespace);
        let selected = ListParams::default().labels(&labels.join(","));
        let listed = pods.list(&selected);
        let log = |error| {
            let service = Key::of(&*facts.service);
            let error = chain(&error);
            tracing::warn!(%service, error, "the parts of a wake cannot be measured yet");
        };
        listed.await.map_err(log).ok()
    }
}
