//! Which nodes get a pod and which lose theirs, and what is said of the set. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet, DaemonSetSpec, DaemonSetStatus},
    core::v1::{Node, Pod},
};
use kube::ResourceExt;

use super::{
    node::{Place, places},
    pod::{candidate, is_of, on_node},
    roll::{self, Room, is_on_delete},
};
use crate::workload::{
    REVISION_HASH, Revisions, claim, describe, has_ended, is_available, is_ready, some, whole,
};

/// A pod that fails is kept so long from its start, so that one that always does is not made over
/// and over.
const FAILED_STAYS: Duration = Duration::from_secs(10);

/// What is known.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) set: &'a DaemonSet,
    /// The pods of its namespace that are its own or nobody's.
    pub(super) pods: Vec<&'a Pod>,
    /// The revisions of its namespace that are its own or nobody's.
    pub(super) revisions: Vec<&'a ControllerRevision>,
    pub(super) nodes: Vec<&'a Node>,
    pub(super) now: Timestamp,
}

/// What is to be done.
#[derive(Debug)]
pub(super) struct Decision<'a> {
    pub(super) revisions: Revisions<'a>,
    pub(super) adopt: Vec<&'a Pod>,
    pub(super) release: Vec<&'a Pod>,
    pub(super) create: Vec<Pod>,
    pub(super) delete: Vec<&'a Pod>,
    pub(super) status: DaemonSetStatus,
    /// Something is due then, though nothing is written.
    pub(super) again: Option<Duration>,
}

pub(super) fn decide<'a>(facts: &Facts<'a>) -> Option<Decision<'a>> {
    let set = facts.set;
    let spec = set.spec.as_ref()?;
    let leaving = set.metadata.deletion_timestamp.is_some();
    let collisions = set
        .status
        .as_ref()
        .and_then(|status| status.collision_count);
    let latest = describe(set, &spec.template, collisions.unwrap_or(0), REVISION_HASH);
    let mut revisions = Revisions::sort(&facts.revisions, set, &spec.selector, latest);
    let hash = revisions.latest.labels().get(REVISION_HASH).cloned()?;
    let uid = set.uid().unwrap_or_default();
    let claims = claim(&facts.pods, &uid, &spec.selector, leaving);
    let own = [claims.owned, claims.adopt.clone()].concat();
    revisions.forget(spec.revision_history_limit, |it| {
        let hash = it.labels().get(REVISION_HASH);
        hash.is_some_and(|hash| own.iter().any(|pod| is_of(pod, hash)))
    });
    let candidate = candidate(set, spec)?;
    let (places, lost) = places(&facts.nodes, &own, &candidate);
    let (status, again) = status(facts, spec, &places, &hash);
    let mut decision = Decision {
        revisions,
        adopt: claims.adopt,
        release: claims.release,
        create: Vec::new(),
        delete: Vec::new(),
        status,
        again,
    };
    if !leaving {
        let stay = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
        decision.delete.extend(lost.into_iter().filter(stay));
        decision.keep(facts, spec, &places, &candidate, &hash);
    }
    Some(decision)
}

impl<'a> Decision<'a> {
    fn keep(
        &mut self,
        facts: &Facts<'a>,
        spec: &DaemonSetSpec,
        places: &[Place<'a>],
        candidate: &Pod,
        hash: &str,
    ) {
        let room = Room::of(spec, self.status.desired_number_scheduled);
        let mut nodes = Vec::new();
        for place in places {
            if place.starts && place.pods.is_empty() {
                nodes.push(place.node.clone());
            }
            self.tidy(place, room, hash, facts.now);
        }
        if !is_on_delete(spec) {
            let min_ready = spec.min_ready_seconds.unwrap_or(0);
            let steps = roll::next(places, hash, min_ready, room, facts.now);
            let known = |pod: &&Pod| !self.delete.iter().any(|it| it.uid() == pod.uid());
            let old: Vec<_> = steps.delete.into_iter().filter(known).collect();
            self.delete.extend(old);
            nodes.extend(steps.create);
        }
        let pods = nodes
            .iter()
            .map(|node| on_node(candidate, node, hash, &facts.pods));
        self.create = pods.collect();
    }

    /// Ends what a node should not have: all if it fits no more, else what has ended and what is
    /// there twice.
    fn tidy(&mut self, place: &Place<'a>, room: Room, hash: &str, now: Timestamp) {
        let staying = place.pods.iter().copied();
        let staying = staying.filter(|pod| pod.metadata.deletion_timestamp.is_none());
        if !place.keeps {
            self.delete.extend(staying);
            return;
        }
        for pod in staying.filter(|pod| has_ended(pod)) {
            match still_stays(pod, now) {
                Some(left) => self.again = [self.again, Some(left)].into_iter().flatten().min(),
                None => self.delete.push(pod),
            }
        }
        let (new, old): (Vec<_>, Vec<_>) = place.live().partition(|pod| is_of(pod, hash));
        if room.surge > 0 {
            self.delete.extend(new.into_iter().skip(1));
            self.delete.extend(old.into_iter().skip(1));
        } else {
            self.delete.extend(place.live().skip(1));
        }
    }
}

/// How long a failed pod is still kept.
fn still_stays(pod: &Pod, now: Timestamp) -> Option<Duration> {
    let made = pod.creation_timestamp()?.0;
    let age = Duration::try_from(now.duration_since(made)).unwrap_or_default();
    FAILED_STAYS.checked_sub(age).filter(|left| !left.is_zero())
}

/// The numbers, and when a pod becomes available though nothing is written.
fn status(
    facts: &Facts<'_>,
    spec: &DaemonSetSpec,
    places: &[Place<'_>],
    hash: &str,
) -> (DaemonSetStatus, Option<Duration>) {
    let set = facts.set;
    let former = set.status.clone().unwrap_or_default();
    let min_ready = spec.min_ready_seconds.unwrap_or(0);
    let (mut ready, mut available, mut updated, mut again) = (0, 0, 0, None);
    let wanted: Vec<_> = places.iter().filter(|place| place.starts).collect();
    for pod in wanted.iter().filter_map(|place| place.pods.first()) {
        ready += i32::from(is_ready(pod));
        updated += i32::from(is_of(pod, hash));
        available += i32::from(is_available(pod, min_ready, facts.now).is_ok());
    }
    // One beside the pod that counts moves the roll on, too.
    for pod in wanted.iter().flat_map(|place| &place.pods) {
        let left = is_available(pod, min_ready, facts.now).err();
        again = [again, left.flatten()].into_iter().flatten().min();
    }
    let has_pods = |place: &&&Place<'_>| !place.pods.is_empty();
    let astray = places.iter().filter(|place| !place.starts);
    let status = DaemonSetStatus {
        observed_generation: set.metadata.generation,
        desired_number_scheduled: whole(wanted.len()),
        current_number_scheduled: whole(wanted.iter().filter(has_pods).count()),
        number_misscheduled: whole(astray.filter(|place| !place.pods.is_empty()).count()),
        number_ready: ready,
        number_available: some(available),
        number_unavailable: some(whole(wanted.len()) - available),
        updated_number_scheduled: some(updated),
        collision_count: former.collision_count,
        conditions: former.conditions,
    };
    (status, again)
}
