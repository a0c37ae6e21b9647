//! Which processes should run. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodStatus};

use super::{
    Facts, Seen,
    facts::is_sidecar,
    status::{Verdict, status},
};

/// Whoever was killed and is still there is killed again after this time.
const KILL_AGAIN: Duration = Duration::from_secs(1);
/// A pod whose successor may have its name stays for so long after its end was asked for, as it does
/// with any kubelet. An older `kubectl delete` (1.33 does, 1.36 does not) looks twice, for the pod and
/// then for its end, and waits in vain for that of the successor if it finds this one the second time.
const FAREWELL: Duration = Duration::from_secs(1);
/// Those who give each of their pods a name of its own.
const NAME_ANEW: [&str; 4] = ["DaemonSet", "Job", "ReplicaSet", "ReplicationController"];

/// What is to be done with a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Containers to start now, by name.
    pub start: Vec<String>,
    /// Containers to stop, by name.
    pub stop: Vec<(String, Stop)>,
    /// What is said of the pod.
    pub status: PodStatus,
    /// Nothing of it runs any more and it is to go: the server may forget it.
    pub gone: bool,
    /// When to ask again, though nothing happens.
    pub again: Option<Duration>,
}

/// How to stop a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Ask it to end.
    Ask,
    /// Its time is over.
    Kill,
}

/// What becomes of the containers, as it is worked out.
#[derive(Debug, Default)]
struct Work {
    start: Vec<String>,
    stop: Vec<(String, Stop)>,
    again: Option<Duration>,
}

/// What to do with a pod of which this is known.
pub fn decide(facts: &Facts) -> Decision {
    let verdict = verdict(facts);
    let mut work = Work::default();
    let ends = facts.ending_since.is_some() || verdict.is_final();
    if ends {
        work.end_all(facts);
    } else {
        work.cure(facts);
        work.go_on(facts);
        work.mind_deadline(facts);
    }
    let running = facts.containers.values().any(Seen::is_running);
    let gone = !running && work.has_said_farewell(facts);
    Decision {
        status: status(facts, &verdict),
        gone,
        start: work.start,
        stop: work.stop,
        again: work.again,
    }
}

/// What the pod has come to.
fn verdict(facts: &Facts) -> Verdict {
    if let Some(phase) = facts
        .pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
    {
        // What was said stays so, whatever happens to processes afterwards.
        match phase {
            "Succeeded" => return Verdict::Succeeded,
            "Failed" => return Verdict::Failed(None),
            _ => {}
        }
    }
    if deadline(facts).is_some_and(|deadline| deadline <= facts.now) {
        let message = "Pod was active on the node longer than the specified deadline";
        return Verdict::Failed(Some(("DeadlineExceeded", message.to_owned())));
    }
    let never = facts.restart_policy() == "Never";
    let failed_init = facts.init().iter().any(|container| {
        let seen = facts.seen(container);
        !is_sidecar(container) && never && seen.end().is_some_and(|end| end.code != 0)
    });
    if failed_init {
        return Verdict::Failed(None);
    }
    let ends: Vec<i32> = facts
        .main()
        .iter()
        .filter_map(|container| facts.seen(container).end().map(|end| end.code))
        .collect();
    let all_ended = ends.len() == facts.main().len() && !ends.is_empty();
    let failed = ends.iter().any(|&code| code != 0);
    match facts.restart_policy() {
        "Never" if all_ended && failed => Verdict::Failed(None),
        "Never" | "OnFailure" if all_ended && !failed => Verdict::Succeeded,
        _ => Verdict::Open,
    }
}

fn deadline(facts: &Facts) -> Option<Timestamp> {
    let seconds = facts.spec()?.active_deadline_seconds?;
    let limit = Duration::from_secs(seconds.max(0).unsigned_abs());
    facts.accepted.checked_add(limit).ok()
}

impl Work {
    /// Starts what is to run and does not, in its turn.
    fn go_on(&mut self, facts: &Facts) {
        if facts.volumes.is_err() {
            return;
        }
        for container in facts.init() {
            let seen = facts.seen(container);
            if is_sidecar(container) {
                self.keep(facts, container, &seen, "Always");
                if !(seen.is_running() && seen.started) {
                    return;
                }
            } else if seen.end().is_none_or(|end| end.code != 0) && !main_has_begun(facts) {
                let policy = match facts.restart_policy() {
                    "Never" => "Never",
                    _ => "OnFailure",
                };
                return self.keep(facts, container, &seen, policy);
            }
        }
        for container in facts.main() {
            let seen = facts.seen(container);
            self.keep(facts, container, &seen, facts.restart_policy());
        }
    }

    /// Starts a container if it should run now, by this policy.
    fn keep(&mut self, facts: &Facts, container: &Container, seen: &Seen, policy: &str) {
        if seen.is_running() || seen.obstacle.is_some() {
            return;
        }
        let Some(end) = seen.end() else {
            return self.start.push(container.name.clone());
        };
        let again = match policy {
            "Always" => true,
            "OnFailure" => end.code != 0,
            _ => false,
        };
        match seen.waits_until().filter(|_| again) {
            Some(moment) if moment > facts.now => self.look_at(facts, moment),
            Some(_) => self.start.push(container.name.clone()),
            None => {}
        }
    }

    /// Stops containers that are sick; they are started again like any that ended.
    fn cure(&mut self, facts: &Facts) {
        for container in facts.init().iter().chain(facts.main()) {
            let seen = facts.seen(container);
            if seen.sick.is_some() && seen.is_running() {
                self.stop(facts, container, &seen);
            }
        }
    }

    /// Ends everything: the others first, then sidecars from the last to the first.
    fn end_all(&mut self, facts: &Facts) {
        let stays = |container: &&Container| is_sidecar(container);
        let (sidecars, init): (Vec<_>, Vec<_>) = facts.init().iter().partition(stays);
        let mut others = init.into_iter().chain(facts.main());
        let mut any = false;
        for container in others.by_ref() {
            let seen = facts.seen(container);
            if seen.is_running() {
                any = true;
                self.stop(facts, container, &seen);
            }
        }
        let overdue = facts
            .ending_since
            .and_then(|since| since.checked_add(facts.grace()).ok())
            .is_some_and(|deadline| deadline <= facts.now);
        for container in sidecars.into_iter().rev() {
            let seen = facts.seen(container);
            if seen.is_running() && (!any || overdue) {
                any = true;
                self.stop(facts, container, &seen);
            }
        }
    }

    /// Asks a container to end, and kills it when its time is over.
    fn stop(&mut self, facts: &Facts, container: &Container, seen: &Seen) {
        // All containers of a pod have the time that the pod has, whenever their turn comes.
        let since = facts
            .ending_since
            .or(seen.asked_to_end)
            .unwrap_or(facts.now);
        let deadline = since.checked_add(facts.grace()).unwrap_or(facts.now);
        if deadline <= facts.now {
            self.stop.push((container.name.clone(), Stop::Kill));
            return self.look_again_in(KILL_AGAIN);
        }
        if seen.asked_to_end.is_none() {
            self.stop.push((container.name.clone(), Stop::Ask));
        }
        self.look_at(facts, deadline);
    }

    /// Whether the pod is to go, and whoever waits for that has had time to see it go.
    fn has_said_farewell(&mut self, facts: &Facts) -> bool {
        let Some(since) = facts.ending_since else {
            return false;
        };
        let least = if may_come_back(&facts.pod) {
            FAREWELL
        } else {
            Duration::ZERO
        };
        let moment = since.checked_add(least).unwrap_or(facts.now);
        if moment > facts.now {
            self.look_at(facts, moment);
        }
        moment <= facts.now
    }

    fn mind_deadline(&mut self, facts: &Facts) {
        if let Some(moment) = deadline(facts) {
            self.look_at(facts, moment);
        }
    }

    fn look_at(&mut self, facts: &Facts, moment: Timestamp) {
        self.look_again_in(
            Duration::try_from(moment.duration_since(facts.now)).unwrap_or_default(),
        );
    }

    fn look_again_in(&mut self, wait: Duration) {
        self.again = Some(self.again.map_or(wait, |soonest| soonest.min(wait)));
    }
}

/// Whether there may be another pod of this name right after it.
fn may_come_back(pod: &Pod) -> bool {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    controller.is_some_and(|owner| !NAME_ANEW.contains(&owner.kind.as_str()))
}

/// Init containers are not run again once the others have begun.
fn main_has_begun(facts: &Facts) -> bool {
    let mut main = facts.main().iter();
    main.any(|container| facts.seen(container).process != super::Process::Never)
}
