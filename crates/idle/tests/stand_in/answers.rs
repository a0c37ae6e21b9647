//! Who stands in for triggers and proofs where the trial is of something else.

use futures::future::BoxFuture;
use kube::ResourceExt;
use neap_idle::{
    api::ElastiService,
    service::{
        prove::{Prover, Search},
        verdict::{Because, Verdict, Verdicts},
    },
};
use neap_kit::{controller::Trigger, key::Key};

/// Says what the triggers say.
pub(crate) const SAYS: &str = "test/says";

/// What the object itself says: a change of it is seen as any other is.
#[derive(Debug)]
pub(crate) struct Written;

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

/// Finds that everything leads where it should.
#[derive(Debug)]
pub(crate) struct Always;

impl Prover for Always {
    fn prove<'a>(&'a self, _: &'a Search) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }
}
