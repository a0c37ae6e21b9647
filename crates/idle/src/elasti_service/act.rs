//! Carries a decision out: the plan, the status, the Events and the cleanup, in this order. It makes no
//! choice.

mod freed_ports;

use k8s_openapi::{
    api::{core::v1::ObjectReference, discovery::v1::EndpointSlice},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::ResourceExt;
use neap_kit::{
    apply::{Error, PlannedChange, ResourceKind},
    builder::OWN_WRITE_TIMEOUT,
    key::Key,
    why::chain,
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
            owner_events,
            ..
        } = decision;
        let changes = self.execute_all(service, plan.changes).await;
        self.sources.record_result(&Key::of(service), &changes);
        changes?;
        if status != facts.status() {
            self.write_status(service, status).await?;
        }
        for event in &events {
            self.tools.record(service, event).await;
        }
        for event in &owner_events {
            for owner in owners(service) {
                self.tools.recorder.record_for(owner, event).await;
            }
        }
        let finalizes = plan.cleanup.iter().any(is_finalizer_change);
        for change in plan.cleanup {
            let done = self.execute(service, change).await;
            if let (true, Err(error)) = (finalizes, &done) {
                self.meter.emit(&Finalized { failed: true });
                log_refused_finalizer(service, error);
            }
            done?;
        }
        if finalizes {
            self.meter.emit(&Finalized { failed: false });
        }
        Ok(())
    }

    async fn execute_all(
        &self,
        service: &ElastiService,
        changes: Vec<ServiceChange>,
    ) -> Result<(), Error> {
        for change in changes {
            self.execute(service, change).await?;
        }
        Ok(())
    }

    async fn execute(&self, service: &ElastiService, change: ServiceChange) -> Result<(), Error> {
        tracing::debug!(%change, "write");
        let if_refused = change.if_refused();
        let change = match change {
            ServiceChange::Write(change) => change,
            ServiceChange::FreePorts { ports, .. } => return self.free_ports(&ports).await,
        };
        let adds_resolvers = writes_slice(&change);
        let written = self.tools.writer.execute_change(change).await;
        if let (Some(mut event), Err(error @ Error::Refused { .. })) = (if_refused, &written) {
            event.message = format!("{}: {error}", event.message);
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

/// The owners of an ElastiService, for Events. All are in its namespace.
fn owners(service: &ElastiService) -> Vec<ObjectReference> {
    let owners = service.owner_references().iter();
    let reference = |owner: &OwnerReference| ObjectReference {
        api_version: Some(owner.api_version.clone()),
        kind: Some(owner.kind.clone()),
        name: Some(owner.name.clone()),
        namespace: service.namespace(),
        uid: Some(owner.uid.clone()),
        ..ObjectReference::default()
    };
    owners.map(reference).collect()
}

/// A finalizer that cannot be removed keeps the namespace from being deleted, so the log names what a person
/// has to do.
fn log_refused_finalizer(service: &ElastiService, error: &Error) {
    let Error::Refused { source, .. } = error else {
        return;
    };
    let (key, error) = (Key::of(service), chain(&**source));
    tracing::warn!(
        %key, error,
        "the API server refuses to remove the finalizer of a deleted ElastiService; if the operator's Role or \
         RoleBinding in that namespace was deleted first, remove the finalizer by hand: kubectl patch \
         elastiservice NAME --type merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'"
    );
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
