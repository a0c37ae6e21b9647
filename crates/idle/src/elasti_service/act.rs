//! Carries a decision out: the plan, the status, the Events and the cleanup, in this order. It makes no
//! choice.

use k8s_openapi::api::discovery::v1::EndpointSlice;
use neap_kit::{
    apply::{Error, PlannedChange, ResourceKind},
    builder::OWN_WRITE_TIMEOUT,
    event::EventDraft,
};

use super::{
    compatible_metrics::{Finalized, StatusWritten},
    controller::ServiceReconciler,
    decide::{Decision, ServiceChange},
    facts::Facts,
};
use crate::api::{ElastiService, ElastiServiceStatus};

impl ServiceReconciler {
    pub(super) async fn act(&self, facts: &Facts, decision: Decision) -> Result<(), Error> {
        let service = &*facts.service;
        let Decision {
            plan,
            status,
            events,
            ..
        } = decision;
        for change in plan.changes {
            self.execute(service, change).await?;
        }
        if status != facts.status() {
            self.write_status(service, status).await?;
        }
        for event in &events {
            self.tools.record(service, event).await;
        }
        let finalizes = plan.cleanup.iter().any(is_finalizer_change);
        for change in plan.cleanup {
            let done = self.execute(service, change).await;
            if finalizes && done.is_err() {
                self.meter.emit(&Finalized { failed: true });
            }
            done?;
        }
        if finalizes {
            self.meter.emit(&Finalized { failed: false });
        }
        Ok(())
    }

    async fn execute(&self, service: &ElastiService, change: ServiceChange) -> Result<(), Error> {
        tracing::debug!(%change, "write");
        let scales_to = change.scales_to();
        let change = match change {
            ServiceChange::Write(change) => change,
            ServiceChange::FreePorts { ports, .. } => {
                return self.sources.ports.free(&self.tools, &ports).await;
            }
        };
        let adds_resolvers = writes_slice(&change);
        let written = self.tools.writer.execute_change(change).await;
        if let (Some(replicas), Err(error @ Error::Refused { .. })) = (scales_to, &written) {
            let message = format!("it could not be scaled to {replicas}: {error}");
            let event = EventDraft::warning("FailedToScale", message);
            self.tools.record(service, &event).await;
        }
        if let (Some(written), true) = (written?, adds_resolvers) {
            // The next decision must not overlook the slice.
            let slices = &self.sources.watched.resolver_slices;
            let _ = slices.wait_for_write(&written, OWN_WRITE_TIMEOUT).await;
        }
        Ok(())
    }

    async fn write_status(
        &self,
        before: &ElastiService,
        status: ElastiServiceStatus,
    ) -> Result<(), Error> {
        let after = ElastiService {
            status: Some(status),
            ..before.clone()
        };
        let written = self.tools.update_status(before, &after).await;
        self.meter.emit(&StatusWritten {
            service: &after,
            mode: after.status.as_ref().and_then(|status| status.mode),
            failed: written.is_err(),
        });
        written
    }
}

fn writes_slice(change: &PlannedChange) -> bool {
    let writes = matches!(
        change,
        PlannedChange::Post { .. } | PlannedChange::Replace { .. }
    );
    writes && *change.kind() == ResourceKind::of::<EndpointSlice>()
}

fn is_finalizer_change(change: &ServiceChange) -> bool {
    match change {
        ServiceChange::Write(change) => *change.kind() == ResourceKind::of::<ElastiService>(),
        ServiceChange::FreePorts { .. } => false,
    }
}
