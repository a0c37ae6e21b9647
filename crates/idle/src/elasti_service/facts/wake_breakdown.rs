//! Measures the parts of the last wake.

use neap_kit::key::Key;

use super::{
    FactSources, Facts,
    breakdown::{awaits_report, breakdown},
};
use crate::api::Breakdown;

impl FactSources {
    /// The time that each part of the last wake took, by the resolvers or its pods; none if the API server did
    /// not respond, or if a resolver has yet to report what its client had to wait.
    pub(in crate::elasti_service) async fn measure_wake(&self, facts: &Facts) -> Option<Breakdown> {
        let status = facts.service.status.as_ref()?;
        let wake = status.last_wake.as_ref()?;
        let namespace = facts.service.metadata.namespace.as_deref()?;
        let pods = self.pods(&facts.service, facts.public.as_deref()?).await?;
        let service = Key::new(namespace, &facts.service.spec.service);
        let cold = self
            .prover
            .cold_start(&service, wake.time, &facts.resolvers)
            .await;
        if awaits_report(wake, &pods.items, cold.as_ref(), facts.now) {
            return None;
        }
        let found = breakdown(wake, &pods.items, cold);
        // A wake that took no measurable time counts as measured, so that it is not measured again.
        let shortest = Breakdown { ready: 1, ..found };
        Some(if found.is_whole() { found } else { shortest })
    }
}
