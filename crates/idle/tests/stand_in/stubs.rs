//! Stubs of triggers and reachability proofs, for tests of other parts.

use futures::future::BoxFuture;
use kube::ResourceExt;
use neap_idle::{
    api::ElastiService,
    elasti_service::reachability::{ProofRequest, Prover},
    reason::Reason,
    trigger::{Verdict, Verdicts},
};
use neap_kit::{controller::Enqueuer, key::Key};

/// The annotation with the verdict of the triggers.
pub(crate) const VERDICT_ANNOTATION: &str = "test/says";

/// Reads the verdict from an annotation of the object, so that a change of it arrives by watch.
#[derive(Debug)]
pub(crate) struct AnnotationTriggers;

impl Verdicts for AnnotationTriggers {
    fn latest(&self, service: &ElastiService) -> Verdict {
        let says = service.annotations().get(VERDICT_ANNOTATION);
        if says.is_some_and(|word| word == "idle") {
            Verdict::Idle(Reason::new("Idle", "no requests"))
        } else {
            Verdict::Unknown(Reason::new("Unknown", "no measurement"))
        }
    }

    fn poll_now<'a>(&'a self, service: &'a ElastiService) -> BoxFuture<'a, Verdict> {
        Box::pin(async { self.latest(service) })
    }

    fn enqueue_changes(&self, _: Enqueuer<Key>) {}
}

/// Proves every search.
#[derive(Debug)]
pub(crate) struct AlwaysReachable;

impl Prover for AlwaysReachable {
    fn prove<'a>(&'a self, _: &'a ProofRequest) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }
}
