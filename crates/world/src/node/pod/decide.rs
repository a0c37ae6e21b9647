//! Which containers to start and stop. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodStatus};

use super::{
    ContainerFacts, Facts,
    facts::is_sidecar,
    status::{PodResult, status},
};

/// The interval at which a killed process that still runs is killed again.
const KILL_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The minimum time for which a deleted pod remains if a successor may have its name, as with any
/// kubelet. An older `kubectl delete` (1.33 does, 1.36 does not) reads the pod twice before it
/// waits for its deletion; if the second read finds the successor, it waits in vain.
const MIN_TERMINATION_TIME: Duration = Duration::from_secs(1);
/// Owners that give each of their pods a new name.
const UNIQUE_NAME_OWNERS: [&str; 4] = ["DaemonSet", "Job", "ReplicaSet", "ReplicationController"];

#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Containers to start now, by name.
    pub start: Vec<String>,
    /// Containers to stop, by name.
    pub stop: Vec<(String, StopMode)>,
    /// The status of the pod.
    pub status: PodStatus,
    /// No process runs any more and the pod is deleted: the API server may remove it.
    pub gone: bool,
    /// The time until the next decision, even if nothing changes.
    pub requeue_after: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Terminate it gracefully.
    Terminate,
    /// Kill it: its grace period is over.
    Kill,
}

/// The decision under construction.
#[derive(Debug, Default)]
struct PodPlan {
    start: Vec<String>,
    stop: Vec<(String, StopMode)>,
    requeue_after: Option<Duration>,
}

/// The decision for a pod.
pub fn decide(facts: &Facts) -> Decision {
    let result = pod_result(facts);
    let mut plan = PodPlan::default();
    let ends = facts.ending_since.is_some() || result.is_final();
    if ends {
        plan.end_all(facts);
    } else {
        plan.stop_unhealthy(facts);
        plan.start_due(facts);
        plan.requeue_at_deadline(facts);
    }
    let running = facts.containers.values().any(ContainerFacts::is_running);
    let gone = !running && plan.may_be_removed(facts);
    Decision {
        status: status(facts, &result),
        gone,
        start: plan.start,
        stop: plan.stop,
        requeue_after: plan.requeue_after,
    }
}

/// The result of the pod.
fn pod_result(facts: &Facts) -> PodResult {
    if let Some(phase) = facts
        .pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
    {
        // A final phase never changes, whatever happens to processes afterwards.
        match phase {
            "Succeeded" => return PodResult::Succeeded,
            "Failed" => return PodResult::Failed(None),
            _ => {}
        }
    }
    if deadline(facts).is_some_and(|deadline| deadline <= facts.now) {
        let message = "Pod was active on the node longer than the specified deadline";
        return PodResult::Failed(Some(("DeadlineExceeded", message.to_owned())));
    }
    let never = facts.restart_policy() == "Never";
    let failed_init = facts.init().iter().any(|container| {
        let observed = facts.container(container);
        !is_sidecar(container) && never && observed.end().is_some_and(|end| end.code != 0)
    });
    if failed_init {
        return PodResult::Failed(None);
    }
    let ends: Vec<i32> = facts
        .main()
        .iter()
        .filter_map(|container| facts.container(container).end().map(|end| end.code))
        .collect();
    let all_ended = ends.len() == facts.main().len() && !ends.is_empty();
    let failed = ends.iter().any(|&code| code != 0);
    match facts.restart_policy() {
        "Never" if all_ended && failed => PodResult::Failed(None),
        "Never" | "OnFailure" if all_ended && !failed => PodResult::Succeeded,
        _ => PodResult::Active,
    }
}

fn deadline(facts: &Facts) -> Option<Timestamp> {
    let seconds = facts.spec()?.active_deadline_seconds?;
    let limit = Duration::from_secs(seconds.max(0).unsigned_abs());
    facts.accepted.checked_add(limit).ok()
}

impl PodPlan {
    /// Starts the containers that are due, in their order.
    fn start_due(&mut self, facts: &Facts) {
        if facts.volumes.is_err() {
            return;
        }
        for container in facts.init() {
            let observed = facts.container(container);
            if is_sidecar(container) {
                self.start_if_due(facts, container, &observed, "Always");
                if !(observed.is_running() && observed.started) {
                    return;
                }
            } else if observed.end().is_none_or(|end| end.code != 0) && !main_has_started(facts) {
                let policy = match facts.restart_policy() {
                    "Never" => "Never",
                    _ => "OnFailure",
                };
                return self.start_if_due(facts, container, &observed, policy);
            }
        }
        for container in facts.main() {
            let observed = facts.container(container);
            self.start_if_due(facts, container, &observed, facts.restart_policy());
        }
    }

    /// Starts a container if it should run now by this policy.
    fn start_if_due(
        &mut self,
        facts: &Facts,
        container: &Container,
        observed: &ContainerFacts,
        policy: &str,
    ) {
        if observed.is_running() || observed.wait_reason.is_some() {
            return;
        }
        let Some(end) = observed.end() else {
            return self.start.push(container.name.clone());
        };
        let restarts = match policy {
            "Always" => true,
            "OnFailure" => end.code != 0,
            _ => false,
        };
        match observed.backoff_until().filter(|_| restarts) {
            Some(time) if time > facts.now => self.requeue_at(facts, time),
            Some(_) => self.start.push(container.name.clone()),
            None => {}
        }
    }

    /// Stops unhealthy containers; they are restarted like any that ended.
    fn stop_unhealthy(&mut self, facts: &Facts) {
        for container in facts.init().iter().chain(facts.main()) {
            let observed = facts.container(container);
            if observed.unhealthy.is_some() && observed.is_running() {
                self.stop(facts, container, &observed);
            }
        }
    }

    /// Stops all containers: sidecars last, from the last to the first.
    fn end_all(&mut self, facts: &Facts) {
        let stays = |container: &&Container| is_sidecar(container);
        let (sidecars, init): (Vec<_>, Vec<_>) = facts.init().iter().partition(stays);
        let mut others = init.into_iter().chain(facts.main());
        let mut any = false;
        for container in others.by_ref() {
            let observed = facts.container(container);
            if observed.is_running() {
                any = true;
                self.stop(facts, container, &observed);
            }
        }
        let overdue = facts
            .ending_since
            .and_then(|since| since.checked_add(facts.grace()).ok())
            .is_some_and(|deadline| deadline <= facts.now);
        for container in sidecars.into_iter().rev() {
            let observed = facts.container(container);
            if observed.is_running() && (!any || overdue) {
                any = true;
                self.stop(facts, container, &observed);
            }
        }
    }

    /// Terminates a container gracefully, and kills it when its grace period is over.
    fn stop(&mut self, facts: &Facts, container: &Container, observed: &ContainerFacts) {
        // All containers of a pod share its grace period, whenever their turn comes.
        let since = facts
            .ending_since
            .or(observed.stop_requested_at)
            .unwrap_or(facts.now);
        let deadline = since.checked_add(facts.grace()).unwrap_or(facts.now);
        if deadline <= facts.now {
            self.stop.push((container.name.clone(), StopMode::Kill));
            return self.requeue_in(KILL_RETRY_INTERVAL);
        }
        if observed.stop_requested_at.is_none() {
            self.stop
                .push((container.name.clone(), StopMode::Terminate));
        }
        self.requeue_at(facts, deadline);
    }

    /// Whether the pod is deleted, and its deletion has been visible for long enough.
    fn may_be_removed(&mut self, facts: &Facts) -> bool {
        let Some(since) = facts.ending_since else {
            return false;
        };
        let least = if name_may_be_reused(&facts.pod) {
            MIN_TERMINATION_TIME
        } else {
            Duration::ZERO
        };
        let time = since.checked_add(least).unwrap_or(facts.now);
        if time > facts.now {
            self.requeue_at(facts, time);
        }
        time <= facts.now
    }

    fn requeue_at_deadline(&mut self, facts: &Facts) {
        if let Some(time) = deadline(facts) {
            self.requeue_at(facts, time);
        }
    }

    fn requeue_at(&mut self, facts: &Facts, time: Timestamp) {
        self.requeue_in(Duration::try_from(time.duration_since(facts.now)).unwrap_or_default());
    }

    fn requeue_in(&mut self, wait: Duration) {
        self.requeue_after = Some(self.requeue_after.map_or(wait, |soonest| soonest.min(wait)));
    }
}

/// Whether another pod of this name may follow.
fn name_may_be_reused(pod: &Pod) -> bool {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    controller.is_some_and(|owner| !UNIQUE_NAME_OWNERS.contains(&owner.kind.as_str()))
}

/// Whether a main container was started. Init containers are not run again after that.
fn main_has_started(facts: &Facts) -> bool {
    let mut main = facts.main().iter();
    main.any(|container| facts.container(container).process != super::ProcessState::NotStarted)
}
