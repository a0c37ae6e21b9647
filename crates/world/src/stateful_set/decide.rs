//! Which pods a StatefulSet creates and deletes now, and its status. Pure.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec, StatefulSetStatus},
    core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec},
};
use kube::ResourceExt;

use super::{
    claims, identity,
    order::{PodStep, PodsByOrdinal, StepPlanner, is_on_delete, partition},
};
use crate::workload::{
    RevisionHistory, is_available, is_running, new_revision, nonzero, phase, template_of, to_i32,
};

/// The label with which revisions of StatefulSets mark their hash.
const REVISION_HASH_LABEL: &str = "controller.kubernetes.io/hash";
/// The delay before a claim that is being deleted is checked again.
const CLAIM_DELETION_POLL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) set: &'a StatefulSet,
    /// The pods of its namespace that it controls, and the orphans.
    pub(super) pods: Vec<&'a Pod>,
    /// The revisions of its namespace that it controls, and the orphans.
    pub(super) revisions: Vec<&'a ControllerRevision>,
    /// Claims by name that belong to the set or would take the names of its claims.
    pub(super) claims: BTreeMap<String, &'a PersistentVolumeClaim>,
    pub(super) now: Timestamp,
}

/// The actions, executed in this order.
#[derive(Debug)]
pub(super) struct Decision<'a> {
    pub(super) revisions: RevisionHistory<'a>,
    pub(super) adopt: Vec<&'a Pod>,
    pub(super) release: Vec<&'a Pod>,
    /// Claims to create, each with the name of its pod.
    pub(super) claims: Vec<(PersistentVolumeClaim, String)>,
    pub(super) reown: Vec<PersistentVolumeClaim>,
    pub(super) repair: Vec<Pod>,
    /// Names of remaining pods whose labels or claims are corrected, for Events.
    pub(super) updated: Vec<String>,
    pub(super) create: Vec<Pod>,
    pub(super) delete: Vec<PodStep<'a>>,
    pub(super) status: StatefulSetStatus,
    /// The time until a pod becomes available or a claim may be gone, which no watch reports.
    pub(super) requeue_after: Option<Duration>,
}

pub(super) fn decide<'a>(facts: &Facts<'a>) -> Option<Decision<'a>> {
    let set = facts.set;
    let spec = set.spec.as_ref()?;
    let leaving = set.metadata.deletion_timestamp.is_some();
    let former = set.status.clone().unwrap_or_default();
    let latest = new_revision(
        set,
        &spec.template,
        former.collision_count.unwrap_or(0),
        REVISION_HASH_LABEL,
    );
    let mut revisions = RevisionHistory::plan(&facts.revisions, set, &spec.selector, latest);
    let uid = set.uid().unwrap_or_default();
    let mut claims = crate::workload::claim(&facts.pods, &uid, &spec.selector, leaving);
    claims
        .adopt
        .retain(|pod| identity::ordinal(&set.name_any(), pod).is_some());
    let own = [claims.owned, claims.adopt.clone()].concat();
    let status = status(facts, spec, &revisions, &own);
    let names = [&status.current_revision, &status.update_revision].map(Clone::clone);
    revisions.truncate(spec.revision_history_limit, |it| {
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
        repair: Vec::new(),
        updated: Vec::new(),
        create: Vec::new(),
        delete: Vec::new(),
        status,
        requeue_after: None,
    };
    if !leaving {
        decision.plan_pods(facts, spec, &PodsByOrdinal::classify(set, spec, &own));
    }
    Some(decision)
}

impl<'a> Decision<'a> {
    /// Whether anything is created or adopted.
    pub(super) fn creates_or_adopts(&self) -> bool {
        let none = self.create.is_empty() && self.claims.is_empty() && self.adopt.is_empty();
        !none || self.revisions.creates_or_adopts()
    }

    fn plan_pods(&mut self, facts: &Facts<'a>, spec: &StatefulSetSpec, pods: &PodsByOrdinal<'a>) {
        let latest = self.revisions.latest.name_any();
        let mut planner = StepPlanner {
            spec,
            pods,
            latest: &latest,
            now: facts.now,
            steps: Vec::new(),
            requeue_after: None,
        };
        planner.plan();
        let steps = std::mem::take(&mut planner.steps);
        self.requeue_after = planner.requeue_after;
        self.repair(facts, pods, &steps);
        for step in steps {
            match step {
                PodStep::Create(ordinal) => self.plan_pod(facts, spec, ordinal),
                step => self.delete.push(step),
            }
        }
    }

    /// Corrects the labels and claims of the remaining pods.
    fn repair(&mut self, facts: &Facts<'a>, pods: &PodsByOrdinal<'a>, steps: &[PodStep<'a>]) {
        let set = facts.set;
        for &(ordinal, pod) in &pods.wanted {
            let Some(pod) = pod.filter(|pod| pod.metadata.deletion_timestamp.is_none()) else {
                continue;
            };
            let before = self.repair.len() + self.reown.len();
            self.repair.extend(identity::repaired(set, pod, ordinal));
            self.plan_claim_owners(facts, ordinal, None);
            if self.repair.len() + self.reown.len() > before {
                self.updated.push(pod.name_any());
            }
            if phase(pod) == "Pending" {
                self.plan_claims(facts, ordinal);
            }
        }
        for &pod in &pods.surplus {
            let goes = steps.contains(&PodStep::ScaleDown(pod));
            if let Some(ordinal) = identity::ordinal(&set.name_any(), pod).filter(|_| goes) {
                self.plan_claim_owners(facts, ordinal, Some(pod));
            }
        }
    }

    fn plan_claim_owners(&mut self, facts: &Facts<'a>, ordinal: i32, leaving: Option<&Pod>) {
        for (_, name) in claims::names(facts.set, ordinal) {
            let live = facts.claims.get(&name);
            let reowned = live.and_then(|live| claims::reowned(facts.set, leaving, live));
            self.reown.extend(reowned);
        }
    }

    /// Plans the missing claims of an ordinal. False if a former one is still being deleted.
    fn plan_claims(&mut self, facts: &Facts<'a>, ordinal: i32) -> bool {
        let pod = format!("{}-{ordinal}", facts.set.name_any());
        for claim in claims::claims(facts.set, ordinal) {
            match facts.claims.get(&claim.name_any()) {
                None => self.claims.push((claim, pod.clone())),
                Some(live) if live.metadata.deletion_timestamp.is_some() => return false,
                Some(_) => {}
            }
        }
        true
    }

    fn plan_pod(&mut self, facts: &Facts<'a>, spec: &StatefulSetSpec, ordinal: i32) {
        if !self.plan_claims(facts, ordinal) {
            self.requeue_after = Some(
                self.requeue_after
                    .map_or(CLAIM_DELETION_POLL, |requeue_after| {
                        requeue_after.min(CLAIM_DELETION_POLL)
                    }),
            );
            return;
        }
        // An existing claim may have owners from an earlier retention policy.
        self.plan_claim_owners(facts, ordinal, None);
        let (template, revision) = self.template(spec, ordinal);
        self.create
            .extend(identity::pod(facts.set, &template, &revision, ordinal));
    }

    /// The template of an ordinal: below the partition still the former one.
    fn template(
        &self,
        spec: &StatefulSetSpec,
        ordinal: i32,
    ) -> (PodTemplateSpec, ControllerRevision) {
        let current = self.status.current_revision.as_deref().unwrap_or_default();
        let former = self.revisions.get(current);
        let former = former.filter(|_| !is_on_delete(spec) && ordinal < partition(spec));
        let former = former.and_then(|it| Some((template_of(it)?, it.clone())));
        former.unwrap_or_else(|| (spec.template.clone(), self.revisions.latest.clone()))
    }
}

fn status(
    facts: &Facts<'_>,
    spec: &StatefulSetSpec,
    revisions: &RevisionHistory<'_>,
    own: &[&Pod],
) -> StatefulSetStatus {
    let set = facts.set;
    let former = set.status.clone().unwrap_or_default();
    let latest = revisions.latest.name_any();
    let current = former.current_revision.filter(|name| !name.is_empty());
    let mut current = current
        .filter(|name| revisions.get(name).is_some())
        .unwrap_or_else(|| latest.clone());
    let seconds = spec.min_ready_seconds.unwrap_or(0);
    let ordinal = |test: &dyn Fn(&Pod) -> bool| to_i32(own.iter().filter(|pod| test(pod)).count());
    let of = |pod: &Pod, name: &str| {
        pod.metadata.deletion_timestamp.is_none() && identity::revision(pod) == Some(name)
    };
    let (replicas, ready) = (to_i32(own.len()), ordinal(&is_running));
    let updated = ordinal(&|pod| of(pod, &latest));
    if !is_on_delete(spec) && updated == replicas && ready == replicas {
        current.clone_from(&latest);
    }
    StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas,
        ready_replicas: nonzero(ready),
        available_replicas: Some(ordinal(&|pod| {
            is_running(pod) && is_available(pod, seconds, facts.now).is_ok()
        })),
        current_replicas: nonzero(ordinal(&|pod| of(pod, &current))),
        updated_replicas: nonzero(updated),
        current_revision: Some(current),
        update_revision: Some(latest),
        collision_count: Some(former.collision_count.unwrap_or(0)),
        conditions: former.conditions,
    }
}
