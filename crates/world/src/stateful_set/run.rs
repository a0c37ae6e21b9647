//! Reads the facts, and carries the decision out.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet},
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::ResourceExt;
use neap_kit::{
    apply::Error,
    controller::Outcome,
    event::Note,
    key::Key,
    manager::Service,
    planted,
    site::Site,
    watch::{Cache, Ended},
    wiring::{Tools, Wiring},
};

use super::{
    claim,
    decide::{Decision, Facts, decide},
    identity,
    order::{Step, numbers},
};
use crate::workload::{Claimable, Claiming, Made, adopt_and_release, echoed, reason, rename};

/// The controller of StatefulSets.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, "statefulset-controller");
    let sets = wiring.kept()?;
    let pods = wiring.read()?;
    let revisions = wiring.read()?;
    let claims = wiring.read()?;
    let claiming = Claiming::new(&sets, |set: &StatefulSet| {
        set.spec.as_ref().map(|spec| &spec.selector)
    });
    wiring.follow(&pods, move |change, trigger| claiming.tell(change, trigger));
    let work = Work {
        own_pods: Claimable::new(&pods),
        own_revisions: Claimable::new(&revisions),
        tools: wiring.tools(),
        sets,
        pods,
        revisions,
        claims,
    };
    Ok(wiring.service(work, Work::reconcile))
}

struct Work {
    sets: Cache<StatefulSet>,
    pods: Cache<Pod>,
    own_pods: Claimable<Pod>,
    revisions: Cache<ControllerRevision>,
    own_revisions: Claimable<ControllerRevision>,
    claims: Cache<PersistentVolumeClaim>,
    tools: Tools,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(set) = self.sets.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let pods = self.own_pods.of(&*set);
        let revisions = self.own_revisions.of(&*set);
        let claims = self.claims(&set, &pods);
        let facts = Facts {
            set: &set,
            pods: pods.iter().map(|pod| &**pod).collect(),
            revisions: revisions.iter().map(|it| &**it).collect(),
            claims: claims.iter().map(|it| (it.name_any(), &**it)).collect(),
            now: self.tools.clock.now(),
        };
        let Some(decision) = decide(&facts) else {
            return Ok(Outcome::Settled);
        };
        let again = decision.again;
        Box::pin(self.carry_out(&set, decision)).await?;
        Ok(again.map_or(Outcome::Settled, Outcome::Again))
    }

    /// The claims of all numbers that there are or shall be.
    fn claims(&self, set: &StatefulSet, pods: &[Arc<Pod>]) -> Vec<Arc<PersistentVolumeClaim>> {
        let Some(spec) = &set.spec else {
            return Vec::new();
        };
        let set_name = set.name_any();
        let there = pods
            .iter()
            .filter_map(|pod| identity::number(&set_name, pod));
        let all: BTreeSet<i32> = numbers(spec).chain(there).collect();
        let namespace = set.namespace().unwrap_or_default();
        let names = all.into_iter().flat_map(|number| claim::names(set, number));
        names
            .filter_map(|(_, name)| self.claims.get(&Key::new(&namespace, &name)))
            .collect()
    }

    async fn carry_out(&self, set: &StatefulSet, decision: Decision<'_>) -> Result<(), Error> {
        let (revisions, hand) = (&decision.revisions, &self.tools.hand);
        self.tools.confirm(set, decision.makes()).await?;
        if !revisions.carry_out(hand, set, &self.revisions).await? {
            return rename(&self.tools, set).await;
        }
        adopt_and_release(hand, set, &decision.adopt, &decision.release).await?;
        let mut said = set.clone();
        said.status = Some(decision.status);
        self.tools.report(set, &said).await?;
        planted!(ClaimsAfterPods => for step in &decision.delete { self.delete(set, *step).await? });
        for claim in &decision.reown {
            let tied = hand.replace(claim).await;
            planted!(ClaimOrNot => continue);
            tied?;
        }
        for pod in &decision.mend {
            hand.replace(pod).await?;
        }
        for pod in &decision.updated {
            self.tell(set, "Update", pod, &Ok(Some(()))).await;
        }
        for (claim, pod) in &decision.claims {
            self.create_claim(set, claim, pod).await?;
        }
        let mut made = Made::default();
        for pod in &decision.create {
            made.add(pod, self.create(set, pod).await?.as_ref());
        }
        for step in &decision.delete {
            self.delete(set, *step).await?;
        }
        made.shown(&self.pods).await
    }

    async fn create_claim(
        &self,
        set: &StatefulSet,
        claim: &PersistentVolumeClaim,
        pod: &str,
    ) -> Result<(), Error> {
        let what = format!(
            "Claim {} Pod {pod} in StatefulSet {}",
            claim.name_any(),
            set.name_any()
        );
        match self.tools.hand.create(claim).await {
            Ok(None) => Ok(()),
            Ok(Some(made)) => {
                let note = Note::normal("SuccessfulCreate", format!("Create {what} success"));
                self.tools.tell(set, &note).await;
                echoed(&self.claims, made.resource_version()).await;
                Ok(())
            }
            Err(error) => {
                let message = format!("Create {what} failed error: {}", reason(&error));
                let note = Note::warning("FailedCreate", message);
                self.tools.tell(set, &note).await;
                Err(error)
            }
        }
    }

    /// Makes a pod, unless it is there.
    async fn create(&self, set: &StatefulSet, pod: &Pod) -> Result<Option<Pod>, Error> {
        let made = self.tools.hand.create(pod).await;
        self.tell(set, "Create", &pod.name_any(), &made).await;
        made
    }

    async fn delete(&self, set: &StatefulSet, step: Step<'_>) -> Result<(), Error> {
        let pod = match step {
            Step::Make(_) => return Ok(()),
            Step::Replace(pod) | Step::Drop(pod) | Step::Renew(pod) => pod,
        };
        let deleted = self.tools.hand.remove(pod, None).await.map(Some);
        self.tell(set, "Delete", &pod.name_any(), &deleted).await;
        planted!(StepOrNot => return Ok(()));
        deleted.map(|_| ())
    }

    /// Tells of what was done to a pod, unless it had been done before.
    async fn tell<T>(
        &self,
        set: &StatefulSet,
        verb: &str,
        pod: &str,
        done: &Result<Option<T>, Error>,
    ) {
        let (well, ill) = match verb {
            "Create" => ("SuccessfulCreate", "FailedCreate"),
            "Update" => ("SuccessfulUpdate", "FailedUpdate"),
            _ => ("SuccessfulDelete", "FailedDelete"),
        };
        let what = format!("Pod {pod} in StatefulSet {}", set.name_any());
        let note = match done {
            Ok(None) => return,
            Ok(Some(_)) => Note::normal(well, format!("{verb} {what} successful")),
            Err(error) => {
                let (verb, why) = (verb.to_lowercase(), reason(error));
                Note::warning(ill, format!("{verb} {what} failed error: {why}"))
            }
        };
        self.tools.tell(set, &note).await;
    }
}
