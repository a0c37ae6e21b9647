//! Which ReplicaSets a Deployment creates, scales and deletes, and its status. Pure.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet};
use kube::ResourceExt;

use super::{
    annotation,
    condition::{Conditions, PROGRESSING, reason},
    history,
    replica_sets::ReplicaSetPlans,
    rollout, scale,
    size::{RolloutSize, is_recreate},
    status,
};
use crate::workload::claim;

#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) deployment: &'a Deployment,
    /// The ReplicaSets of its namespace that it controls, and the orphans.
    pub(super) sets: Vec<&'a ReplicaSet>,
    /// The uids of ReplicaSets with pods that have not ended.
    pub(super) busy: BTreeSet<String>,
    pub(super) now: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Decision<'a> {
    pub(super) adopt: Vec<&'a ReplicaSet>,
    pub(super) release: Vec<&'a ReplicaSet>,
    pub(super) create: Option<ReplicaSet>,
    /// Pairs of the live and the desired ReplicaSet.
    pub(super) update: Vec<(&'a ReplicaSet, ReplicaSet)>,
    pub(super) delete: Vec<&'a ReplicaSet>,
    pub(super) status: DeploymentStatus,
    /// The revision to set on the Deployment itself.
    pub(super) revision: Option<String>,
    /// The time until the progress deadline passes, which no watch reports.
    pub(super) requeue_after: Option<Duration>,
}

pub(super) fn decide<'a>(facts: &Facts<'a>) -> Decision<'a> {
    let deployment = facts.deployment;
    let Some(spec) = &deployment.spec else {
        return Decision::default();
    };
    let leaving = deployment.metadata.deletion_timestamp.is_some();
    let uid = deployment.uid().unwrap_or_default();
    let claims = claim(&facts.sets, &uid, &spec.selector, leaving);
    let mut own = claims.owned;
    own.extend(&claims.adopt);
    let former = deployment.status.as_ref();
    let mut sync = DeploymentSync {
        facts,
        spec,
        size: RolloutSize::of(spec),
        sets: ReplicaSetPlans::classify(own, &spec.template),
        conditions: Conditions {
            list: former
                .and_then(|status| status.conditions.clone())
                .unwrap_or_default(),
            now: facts.now,
        },
        decision: Decision {
            adopt: claims.adopt,
            release: claims.release,
            ..Decision::default()
        },
    };
    if leaving {
        sync.set_status(false);
    } else {
        sync.plan();
    }
    sync.into_decision()
}

/// One reconcile of a Deployment.
struct DeploymentSync<'f, 'a> {
    facts: &'f Facts<'a>,
    spec: &'a DeploymentSpec,
    size: RolloutSize,
    sets: ReplicaSetPlans<'a>,
    conditions: Conditions,
    decision: Decision<'a>,
}

impl<'a> DeploymentSync<'_, 'a> {
    fn plan(&mut self) {
        status::pause(&mut self.conditions, self.facts.deployment);
        self.sets.set_revision(self.facts.deployment);
        let is_paused = self.spec.paused == Some(true);
        if is_paused || scale::is_due(&self.sets, self.size) {
            self.record_found();
            let former = self.facts.deployment.status.as_ref();
            let present = former.and_then(|status| status.replicas).unwrap_or(0);
            scale::scale(&mut self.sets, self.size, present, is_recreate(self.spec));
            if is_paused {
                self.delete_old_sets();
            }
            self.set_status(false);
            return;
        }
        if is_recreate(self.spec) {
            if rollout::scale_down_all(&mut self.sets, &self.facts.busy, self.size) {
                self.find_or_create();
                rollout::scale_up_new(&mut self.sets, self.size);
            } else {
                self.record_found();
            }
        } else {
            self.find_or_create();
            rollout::rolling_update(&mut self.sets, self.size);
        }
        self.set_status(true);
    }

    fn find_or_create(&mut self) {
        if self.sets.new.is_some() {
            self.record_found();
            return;
        }
        self.sets.plan_new(self.facts.deployment, self.size);
        if let Some(new) = &self.sets.new
            && status::deadline(self.facts.deployment).is_some()
        {
            let message = format!("Created new replica set {:?}", new.desired.name_any());
            self.conditions
                .set(PROGRESSING, "True", reason::CREATED, message);
        }
    }

    /// Records that the ReplicaSet of the current template existed before the first reconcile.
    fn record_found(&mut self) {
        if let Some(new) = &self.sets.new
            && status::deadline(self.facts.deployment).is_some()
            && self.conditions.get(PROGRESSING).is_none()
        {
            let message = format!("Found new replica set {:?}", new.desired.name_any());
            self.conditions
                .set(PROGRESSING, "True", reason::FOUND, message);
        }
    }

    fn delete_old_sets(&mut self) {
        self.decision.delete = history::surplus(&self.sets, self.spec.revision_history_limit);
    }

    /// Sets the status; `rolls` adds the progress of a rollout.
    fn set_status(&mut self, rolls: bool) {
        let deployment = self.facts.deployment;
        let mut status = status::numbers(deployment, &self.sets);
        status::availability(&mut self.conditions, &status, self.size);
        if rolls {
            let (conditions, sets) = (&mut self.conditions, &self.sets);
            self.decision.requeue_after =
                status::progress(conditions, deployment, &status, sets, self.size);
            status::failure(&mut self.conditions, &self.sets);
            if status::is_complete(&status, self.size) {
                self.delete_old_sets();
            }
        }
        status.conditions = Some(self.conditions.list.clone());
        self.decision.status = status;
    }

    fn into_decision(self) -> Decision<'a> {
        let mut decision = self.decision;
        let new = self.sets.new.as_ref();
        decision.revision =
            new.and_then(|new| new.desired.annotations().get(annotation::REVISION).cloned());
        for set in self.sets.new.into_iter().chain(self.sets.old) {
            match set.live {
                None => decision.create = Some(set.desired),
                Some(live) if *live != set.desired => decision.update.push((live, set.desired)),
                Some(_) => {}
            }
        }
        decision
    }
}
