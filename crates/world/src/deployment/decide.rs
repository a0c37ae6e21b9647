//! What becomes of a Deployment's sets, and what is said of it. Pure.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet};
use kube::ResourceExt;

use super::{
    annotation,
    condition::{Conditions, PROGRESSING, reason},
    history, roll, scale,
    sets::Sets,
    size::{Size, is_recreate},
    status,
};
use crate::workload::claim;

/// What is known.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) deployment: &'a Deployment,
    /// The sets of its namespace that are its own or nobody's.
    pub(super) sets: Vec<&'a ReplicaSet>,
    /// The uids of sets that have pods which have not ended.
    pub(super) busy: BTreeSet<String>,
    pub(super) now: Timestamp,
}

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Decision<'a> {
    pub(super) adopt: Vec<&'a ReplicaSet>,
    pub(super) release: Vec<&'a ReplicaSet>,
    pub(super) create: Option<ReplicaSet>,
    /// From what to what.
    pub(super) update: Vec<(&'a ReplicaSet, ReplicaSet)>,
    pub(super) delete: Vec<&'a ReplicaSet>,
    pub(super) status: DeploymentStatus,
    /// The Deployment's own revision.
    pub(super) revision: Option<String>,
    /// It is late then, though nothing is written.
    pub(super) again: Option<Duration>,
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
    let mut course = Course {
        facts,
        spec,
        size: Size::of(spec),
        sets: Sets::sort(own, &spec.template),
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
        course.report(false);
    } else {
        course.take();
    }
    course.end()
}

/// A pass over a Deployment.
struct Course<'f, 'a> {
    facts: &'f Facts<'a>,
    spec: &'a DeploymentSpec,
    size: Size,
    sets: Sets<'a>,
    conditions: Conditions,
    decision: Decision<'a>,
}

impl<'a> Course<'_, 'a> {
    fn take(&mut self) {
        status::pause(&mut self.conditions, self.facts.deployment);
        self.sets.number(self.facts.deployment);
        let is_paused = self.spec.paused == Some(true);
        if is_paused || scale::is_due(&self.sets, self.size) {
            self.found();
            let former = self.facts.deployment.status.as_ref();
            let present = former.and_then(|status| status.replicas).unwrap_or(0);
            scale::scale(&mut self.sets, self.size, present, is_recreate(self.spec));
            if is_paused {
                self.tidy();
            }
            self.report(false);
            return;
        }
        if is_recreate(self.spec) {
            if roll::emptied(&mut self.sets, &self.facts.busy, self.size) {
                self.find_or_make();
                roll::fill(&mut self.sets, self.size);
            } else {
                self.found();
            }
        } else {
            self.find_or_make();
            roll::rolling(&mut self.sets, self.size);
        }
        self.report(true);
    }

    fn find_or_make(&mut self) {
        if self.sets.new.is_some() {
            self.found();
            return;
        }
        self.sets.make(self.facts.deployment, self.size);
        if let Some(new) = &self.sets.new
            && status::deadline(self.facts.deployment).is_some()
        {
            let message = format!("Created new replica set {:?}", new.goal.name_any());
            self.conditions
                .set(PROGRESSING, "True", reason::CREATED, message);
        }
    }

    /// The first look at a set that was there before.
    fn found(&mut self) {
        if let Some(new) = &self.sets.new
            && status::deadline(self.facts.deployment).is_some()
            && self.conditions.get(PROGRESSING).is_none()
        {
            let message = format!("Found new replica set {:?}", new.goal.name_any());
            self.conditions
                .set(PROGRESSING, "True", reason::FOUND, message);
        }
    }

    fn tidy(&mut self) {
        self.decision.delete = history::beyond(&self.sets, self.spec.revision_history_limit);
    }

    /// Says how things are; of a roll-out also how it goes.
    fn report(&mut self, rolls: bool) {
        let deployment = self.facts.deployment;
        let mut status = status::numbers(deployment, &self.sets);
        status::availability(&mut self.conditions, &status, self.size);
        if rolls {
            let (conditions, sets) = (&mut self.conditions, &self.sets);
            self.decision.again =
                status::progress(conditions, deployment, &status, sets, self.size);
            status::failure(&mut self.conditions, &self.sets);
            if status::is_complete(&status, self.size) {
                self.tidy();
            }
        }
        status.conditions = Some(self.conditions.list.clone());
        self.decision.status = status;
    }

    fn end(self) -> Decision<'a> {
        let mut decision = self.decision;
        let new = self.sets.new.as_ref();
        decision.revision =
            new.and_then(|new| new.goal.annotations().get(annotation::REVISION).cloned());
        for set in self.sets.new.into_iter().chain(self.sets.old) {
            match set.live {
                None => decision.create = Some(set.goal),
                Some(live) if *live != set.goal => decision.update.push((live, set.goal)),
                Some(_) => {}
            }
        }
        decision
    }
}
