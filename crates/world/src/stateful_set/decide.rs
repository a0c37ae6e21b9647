//! Which pods a set makes and ends now, and what is said of it. Pure.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec, StatefulSetStatus},
    core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec},
};
use kube::ResourceExt;

use super::{
    claim, identity,
    order::{Places, Step, Walk, is_on_delete, partition},
};
use crate::workload::{
    Revisions, describe, is_available, is_running, phase, some, template_of, whole,
};

/// Where revisions of these sets note their hash.
const HASH: &str = "controller.kubernetes.io/hash";
/// So long until a claim that is on its way out may be gone.
const CLAIM_GOES: Duration = Duration::from_secs(1);

/// What is known.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) set: &'a StatefulSet,
    /// The pods of its namespace that are its own or nobody's.
    pub(super) pods: Vec<&'a Pod>,
    /// The revisions of its namespace that are its own or nobody's.
    pub(super) revisions: Vec<&'a ControllerRevision>,
    /// Claims by name, as far as they are or could be its own.
    pub(super) claims: BTreeMap<String, &'a PersistentVolumeClaim>,
    pub(super) now: Timestamp,
}

/// What is to be done, in this order.
#[derive(Debug)]
pub(super) struct Decision<'a> {
    pub(super) revisions: Revisions<'a>,
    pub(super) adopt: Vec<&'a Pod>,
    pub(super) release: Vec<&'a Pod>,
    /// Claims to make, each with the name of its pod.
    pub(super) claims: Vec<(PersistentVolumeClaim, String)>,
    pub(super) reown: Vec<PersistentVolumeClaim>,
    pub(super) mend: Vec<Pod>,
    /// The pods that stay, and of which something is put right.
    pub(super) updated: Vec<String>,
    pub(super) create: Vec<Pod>,
    pub(super) delete: Vec<Step<'a>>,
    pub(super) status: StatefulSetStatus,
    /// Something is due then, though nothing is written.
    pub(super) again: Option<Duration>,
}

pub(super) fn decide<'a>(facts: &Facts<'a>) -> Option<Decision<'a>> {
    let set = facts.set;
    let spec = set.spec.as_ref()?;
    let leaving = set.metadata.deletion_timestamp.is_some();
    let former = set.status.clone().unwrap_or_default();
    let latest = describe(
        set,
        &spec.template,
        former.collision_count.unwrap_or(0),
        HASH,
    );
    let mut revisions = Revisions::sort(&facts.revisions, set, &spec.selector, latest);
    let uid = set.uid().unwrap_or_default();
    let mut claims = crate::workload::claim(&facts.pods, &uid, &spec.selector, leaving);
    claims
        .adopt
        .retain(|pod| identity::number(&set.name_any(), pod).is_some());
    let own = [claims.owned, claims.adopt.clone()].concat();
    let status = status(facts, spec, &revisions, &own);
    let names = [&status.current_revision, &status.update_revision].map(Clone::clone);
    revisions.forget(spec.revision_history_limit, |it| {
        let name = Some(it.name_any());
        names.contains(&name)
            || own
                .iter()
                .any(|pod| identity::revision(pod) == name.as_deref())
    });
    let mut decision = Decision {
        revisions,
        adopt: claims.adopt,
        release: claims.release,
        claims: Vec::new(),
        reown: Vec::new(),
        mend: Vec::new(),
        updated: Vec::new(),
        create: Vec::new(),
        delete: Vec::new(),
        status,
        again: None,
    };
    if !leaving {
        decision.fill(facts, spec, &Places::sort(set, spec, &own));
    }
    Some(decision)
}

impl<'a> Decision<'a> {
    /// Whether there will be more that is the set's.
    pub(super) fn makes(&self) -> bool {
        let none = self.create.is_empty() && self.claims.is_empty() && self.adopt.is_empty();
        !none || self.revisions.makes()
    }

    fn fill(&mut self, facts: &Facts<'a>, spec: &StatefulSetSpec, places: &Places<'a>) {
        let latest = self.revisions.latest.name_any();
        let mut walk = Walk {
            spec,
            places,
            latest: &latest,
            now: facts.now,
            steps: Vec::new(),
            again: None,
        };
        walk.go();
        let steps = std::mem::take(&mut walk.steps);
        self.again = walk.again;
        self.keep(facts, places, &steps);
        for step in steps {
            match step {
                Step::Make(number) => self.make(facts, spec, number),
                step => self.delete.push(step),
            }
        }
    }

    /// Keeps those that stay what they are.
    fn keep(&mut self, facts: &Facts<'a>, places: &Places<'a>, steps: &[Step<'a>]) {
        let set = facts.set;
        for &(number, pod) in &places.wanted {
            let Some(pod) = pod.filter(|pod| pod.metadata.deletion_timestamp.is_none()) else {
                continue;
            };
            let before = self.mend.len() + self.reown.len();
            self.mend.extend(identity::mended(set, pod, number));
            self.own_claims(facts, number, None);
            if self.mend.len() + self.reown.len() > before {
                self.updated.push(pod.name_any());
            }
            if phase(pod) == "Pending" {
                self.make_claims(facts, number);
            }
        }
        for &pod in &places.surplus {
            let goes = steps.contains(&Step::Drop(pod));
            if let Some(number) = identity::number(&set.name_any(), pod).filter(|_| goes) {
                self.own_claims(facts, number, Some(pod));
            }
        }
    }

    fn own_claims(&mut self, facts: &Facts<'a>, number: i32, leaving: Option<&Pod>) {
        for (_, name) in claim::names(facts.set, number) {
            let live = facts.claims.get(&name);
            let reowned = live.and_then(|live| claim::reowned(facts.set, leaving, live));
            self.reown.extend(reowned);
        }
    }

    /// Plans the claims that a number lacks. False if a former one is still on its way out.
    fn make_claims(&mut self, facts: &Facts<'a>, number: i32) -> bool {
        let pod = format!("{}-{number}", facts.set.name_any());
        for claim in claim::claims(facts.set, number) {
            match facts.claims.get(&claim.name_any()) {
                None => self.claims.push((claim, pod.clone())),
                Some(live) if live.metadata.deletion_timestamp.is_some() => return false,
                Some(_) => {}
            }
        }
        true
    }

    fn make(&mut self, facts: &Facts<'a>, spec: &StatefulSetSpec, number: i32) {
        if !self.make_claims(facts, number) {
            self.again = Some(self.again.map_or(CLAIM_GOES, |again| again.min(CLAIM_GOES)));
            return;
        }
        // A claim that was kept may have been so by a policy that is no more.
        self.own_claims(facts, number, None);
        let (template, revision) = self.template(spec, number);
        self.create
            .extend(identity::pod(facts.set, &template, &revision, number));
    }

    /// What a pod with this number is made of: below the partition still of the former template.
    fn template(
        &self,
        spec: &StatefulSetSpec,
        number: i32,
    ) -> (PodTemplateSpec, ControllerRevision) {
        let current = self.status.current_revision.as_deref().unwrap_or_default();
        let former = self.revisions.named(current);
        let former = former.filter(|_| !is_on_delete(spec) && number < partition(spec));
        let former = former.and_then(|it| Some((template_of(it)?, it.clone())));
        former.unwrap_or_else(|| (spec.template.clone(), self.revisions.latest.clone()))
    }
}

fn status(
    facts: &Facts<'_>,
    spec: &StatefulSetSpec,
    revisions: &Revisions<'_>,
    own: &[&Pod],
) -> StatefulSetStatus {
    let set = facts.set;
    let former = set.status.clone().unwrap_or_default();
    let latest = revisions.latest.name_any();
    let current = former.current_revision.filter(|name| !name.is_empty());
    let mut current = current
        .filter(|name| revisions.named(name).is_some())
        .unwrap_or_else(|| latest.clone());
    let seconds = spec.min_ready_seconds.unwrap_or(0);
    let number = |test: &dyn Fn(&Pod) -> bool| whole(own.iter().filter(|pod| test(pod)).count());
    let of = |pod: &Pod, name: &str| {
        pod.metadata.deletion_timestamp.is_none() && identity::revision(pod) == Some(name)
    };
    let (replicas, ready) = (whole(own.len()), number(&is_running));
    let updated = number(&|pod| of(pod, &latest));
    if !is_on_delete(spec) && updated == replicas && ready == replicas {
        current.clone_from(&latest);
    }
    StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas,
        ready_replicas: some(ready),
        available_replicas: Some(number(&|pod| {
            is_running(pod) && is_available(pod, seconds, facts.now).is_ok()
        })),
        current_replicas: some(number(&|pod| of(pod, &current))),
        updated_replicas: some(updated),
        current_revision: Some(current),
        update_revision: Some(latest),
        collision_count: Some(former.collision_count.unwrap_or(0)),
        conditions: former.conditions,
    }
}
