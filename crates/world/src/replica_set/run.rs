//! Reads the facts, and carries the decision out.

use std::sync::Arc;

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use neap_kit::{
    apply::Error,
    controller::Outcome,
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended},
    wiring::{Tools, Wiring},
};

use super::decide::{Decision, Facts, decide};
use crate::workload::{Claimable, Claiming, adopt_and_release, create_pods, delete_pod};

/// The controller of ReplicaSets.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, "replicaset-controller");
    let sets = wiring.kept()?;
    let pods = wiring.read()?;
    let claiming = Claiming::new(&sets, |set: &ReplicaSet| {
        set.spec.as_ref().map(|spec| &spec.selector)
    });
    wiring.follow(&pods, move |change, trigger| claiming.tell(change, trigger));
    let work = Work {
        own: Claimable::new(&pods),
        tools: wiring.tools(),
        sets,
        pods,
    };
    Ok(wiring.service(work, Work::reconcile))
}

struct Work {
    sets: Cache<ReplicaSet>,
    pods: Cache<Pod>,
    own: Claimable<Pod>,
    tools: Tools,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(set) = self.sets.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let pods = self.own.of(&*set);
        let facts = Facts {
            set: &set,
            pods: pods.iter().map(|pod| &**pod).collect(),
            now: self.tools.clock.now(),
        };
        let decision = decide(&facts);
        let again = decision.again;
        // Whole pods are held across its awaits.
        Box::pin(self.carry_out(&set, decision)).await?;
        Ok(again.map_or(Outcome::Settled, Outcome::Again))
    }

    async fn carry_out(&self, set: &ReplicaSet, decision: Decision<'_>) -> Result<(), Error> {
        let (adopt, release) = (&decision.adopt, &decision.release);
        let makes = !decision.create.is_empty() || !adopt.is_empty();
        self.tools.confirm(set, makes).await?;
        adopt_and_release(&self.tools.hand, set, adopt, release).await?;
        let mut said = set.clone();
        said.status = Some(decision.status);
        self.tools.report(set, &said).await?;
        let made = create_pods(&self.tools, set, &decision.create).await?;
        for pod in &decision.delete {
            delete_pod(&self.tools, set, pod).await?;
        }
        made.shown(&self.pods).await
    }
}
