//! Finds out where the time of a wake went.

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{ListParams, ObjectList},
};
use neap_kit::{key::Key, why::chain};

use super::Work;
use crate::{
    api::Breakdown,
    service::{breakdown::breakdown, facts::Facts},
};

impl Work {
    /// From what pods and resolvers say of the last wake; nothing if the server does not answer.
    pub(super) async fn measure(&self, facts: &Facts<'_>) -> Option<Breakdown> {
        let status = facts.service.status.as_ref()?;
        let wake = status.last_wake.as_ref()?;
        let namespace = facts.service.metadata.namespace.as_deref()?;
        let pods = self.pods(facts, namespace).await?;
        let service = Key::new(namespace, &facts.service.spec.service);
        let cold = self.prover.cold(&service, wake.time, &facts.resolvers);
        let found = breakdown(wake, &pods.items, cold.await);
        // What took no time that anybody could measure is not asked for again.
        let least = Breakdown { ready: 1, ..found };
        Some(if found.is_whole() { found } else { least })
    }

    /// Those that the Service selects, once for each wake.
    async fn pods(&self, facts: &Facts<'_>, namespace: &str) -> Option<ObjectList<Pod>> {
        let spec = facts.public?.spec.as_ref()?;
        let labels = spec.selector.iter().flatten();
        let labels: Vec<_> = labels
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let pods: Api<Pod> = Api::namespaced(self.site.client.clone(), namespace);
        let selected = ListParams::default().labels(&labels.join(","));
        let listed = pods.list(&selected);
        let told = |error| {
            let service = Key::of(facts.service);
            let error = chain(&error);
            tracing::warn!(%service, error, "where the time of a wake went cannot be found out yet");
        };
        listed.await.map_err(told).ok()
    }
}
