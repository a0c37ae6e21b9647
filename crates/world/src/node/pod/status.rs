//! What is said of a pod. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, HostIP, PodCondition, PodIP, PodStatus,
};

use super::{Ended, Facts, Process, START_ERROR, Seen, facts::is_sidecar};
use crate::workload::moment;

/// What a pod has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes on.
    Open,
    /// All its containers did what they were for.
    Succeeded,
    /// It will not be tried again; with a reason if that was not its own doing.
    Failed(Option<(&'static str, String)>),
}

impl Verdict {
    pub(super) fn is_final(&self) -> bool {
        *self != Self::Open
    }
}

/// The status, with what others say in it left as it is.
pub(super) fn status(facts: &Facts, verdict: &Verdict) -> PodStatus {
    let mut status = facts.pod.status.clone().unwrap_or_default();
    let now_initialized = is_initialized(facts);
    let statuses = |containers: &[Container], waits: bool| {
        let all = containers
            .iter()
            .map(|container| of_container(facts, container, waits));
        Some(all.collect::<Vec<_>>()).filter(|all| !all.is_empty())
    };
    status.init_container_statuses = statuses(facts.init(), false);
    status.container_statuses = statuses(facts.main(), !now_initialized);
    status.phase = Some(phase(facts, verdict).to_owned());
    if let Verdict::Failed(Some((reason, message))) = verdict {
        status.reason = Some((*reason).to_owned());
        status.message = Some(message.clone());
    }
    status.host_ip = Some(facts.node_address.to_string());
    status.host_ips = Some(vec![HostIP {
        ip: facts.node_address.to_string(),
    }]);
    status.pod_ip = Some(facts.address.to_string());
    status.pod_ips = Some(vec![PodIP {
        ip: facts.address.to_string(),
    }]);
    status.start_time.get_or_insert(moment(facts.accepted));
    for condition in conditions(facts, verdict, now_initialized) {
        say(&mut status, condition, facts);
    }
    status
}

fn phase(facts: &Facts, verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Succeeded => "Succeeded",
        Verdict::Failed(_) => "Failed",
        Verdict::Open => {
            let begun = |container: &Container| facts.seen(container).process != Process::Never;
            let all = facts.main().iter().all(begun);
            if all && is_initialized(facts) {
                "Running"
            } else {
                "Pending"
            }
        }
    }
}

fn is_initialized(facts: &Facts) -> bool {
    facts.init().iter().all(|container| {
        let seen = facts.seen(container);
        if is_sidecar(container) {
            seen.started || seen.restarts > 0
        } else {
            seen.end().is_some_and(|end| end.code == 0)
        }
    })
}

/// A condition as it should be: type, whether it is so, and why not.
type Said = (&'static str, bool, Option<(&'static str, String)>);

fn conditions(facts: &Facts, verdict: &Verdict, initialized: bool) -> [Said; 4] {
    let names = |containers: &[Container], lacks: &dyn Fn(&Seen) -> bool| {
        let found = containers
            .iter()
            .filter(|container| lacks(&facts.seen(container)));
        found
            .map(|container| container.name.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let incomplete = names(facts.init(), &|seen| {
        !(seen.started || seen.end().is_some_and(|end| end.code == 0))
    });
    let unready = names(facts.main(), &|seen| !seen.is_ready());
    let why_unready = match verdict {
        Verdict::Succeeded => Some(("PodCompleted", String::new())),
        Verdict::Failed(_) => Some(("PodFailed", String::new())),
        Verdict::Open if !unready.is_empty() => {
            let message = format!("containers with unready status: [{unready}]");
            Some(("ContainersNotReady", message))
        }
        Verdict::Open => None,
    };
    let gates = why_unready.clone().or_else(|| closed_gate(facts));
    let why_uninitialized = (!initialized && *verdict != Verdict::Succeeded).then(|| {
        let message = format!("containers with incomplete status: [{incomplete}]");
        ("ContainersNotInitialized", message)
    });
    let ended = verdict.is_final();
    [
        (
            "PodReadyToStartContainers",
            facts.volumes.is_ok() && !ended,
            None,
        ),
        (
            "Initialized",
            why_uninitialized.is_none(),
            why_uninitialized,
        ),
        ("Ready", gates.is_none(), gates),
        ("ContainersReady", why_unready.is_none(), why_unready),
    ]
}

/// A condition of others on which the pod's readiness hangs, and which is not so.
fn closed_gate(facts: &Facts) -> Option<(&'static str, String)> {
    let gates = facts.spec()?.readiness_gates.iter().flatten();
    let conditions = facts
        .pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let is_open = |kind: &str| {
        conditions
            .clone()
            .any(|one| one.type_ == kind && one.status == "True")
    };
    let closed = gates
        .map(|gate| &gate.condition_type)
        .find(|kind| !is_open(kind))?;
    let message =
        format!("the status of pod readiness gate \"{closed}\" is not \"True\", but False");
    Some(("ReadinessGatesNotReady", message))
}

/// Puts a condition into the status; its time moves only when its status does.
fn say(status: &mut PodStatus, (kind, so, why): Said, facts: &Facts) {
    let conditions = status.conditions.get_or_insert_default();
    let truth = if so { "True" } else { "False" };
    let place = conditions
        .iter()
        .position(|condition| condition.type_ == kind);
    let since = place
        .filter(|&place| conditions[place].status == truth)
        .and_then(|place| conditions[place].last_transition_time.clone());
    let (reason, message) = match why {
        Some((reason, message)) => (
            Some(reason.to_owned()),
            Some(message).filter(|text| !text.is_empty()),
        ),
        None => (None, None),
    };
    let condition = PodCondition {
        type_: kind.to_owned(),
        status: truth.to_owned(),
        reason,
        message,
        last_transition_time: Some(since.unwrap_or(moment(facts.now))),
        observed_generation: facts.pod.metadata.generation,
        ..PodCondition::default()
    };
    match place {
        Some(place) => conditions[place] = condition,
        None => conditions.push(condition),
    }
}

fn of_container(facts: &Facts, container: &Container, waits_for_init: bool) -> ContainerStatus {
    let seen = facts.seen(container);
    let image = container.image.clone().unwrap_or_default();
    let id = match &seen.process {
        Process::Running { id, .. } => Some(id),
        Process::Ended(end) => Some(&end.id),
        Process::Never => None,
    };
    let done = seen.end().is_some_and(|end| end.code == 0);
    let state = state(facts, container, &seen, waits_for_init);
    // While it waits to be started again, the last end is what was before.
    let before = match &state.waiting {
        Some(_) => seen.end().or(seen.before.as_ref()),
        None => seen.before.as_ref(),
    };
    let is_init = facts.init().iter().any(|init| init.name == container.name);
    ContainerStatus {
        name: container.name.clone(),
        image_id: image.clone(),
        image,
        container_id: id.map(|id| format!("process://{id}")),
        ready: if is_init && !is_sidecar(container) {
            done
        } else {
            seen.is_ready()
        },
        started: Some(seen.is_running() && seen.started),
        restart_count: seen.restarts,
        last_state: Some(before.map(terminated).unwrap_or_default()),
        state: Some(state),
        ..ContainerStatus::default()
    }
}

fn state(
    facts: &Facts,
    container: &Container,
    seen: &Seen,
    waits_for_init: bool,
) -> ContainerState {
    if let Process::Running { since, .. } = &seen.process {
        let started_at = Some(moment(*since));
        return ContainerState {
            running: Some(ContainerStateRunning { started_at }),
            ..ContainerState::default()
        };
    }
    if let Some(obstacle) = &seen.obstacle {
        return waiting(obstacle.reason, Some(obstacle.message.clone()));
    }
    if let Some(end) = seen.end() {
        return match seen
            .waits_until()
            .filter(|_| is_restarted(facts, container, end))
        {
            Some(moment) if moment > facts.now => crash_loop(facts, container, moment, end),
            _ => terminated(end),
        };
    }
    match &facts.volumes {
        Err(obstacle) => waiting("ContainerCreating", Some(obstacle.message.clone())),
        Ok(()) if waits_for_init => waiting("PodInitializing", None),
        Ok(()) => waiting("ContainerCreating", None),
    }
}

fn is_restarted(facts: &Facts, container: &Container, end: &Ended) -> bool {
    if is_sidecar(container) {
        return true;
    }
    let is_init = facts.init().iter().any(|init| init.name == container.name);
    match facts.restart_policy() {
        "Always" => !is_init || end.code != 0,
        "OnFailure" => end.code != 0,
        _ => false,
    }
}

fn crash_loop(
    facts: &Facts,
    container: &Container,
    until: Timestamp,
    end: &Ended,
) -> ContainerState {
    let wait = until.duration_since(end.ended).as_secs();
    let pod = facts.pod.metadata.name.as_deref().unwrap_or_default();
    let message = format!(
        "back-off {wait}s restarting failed container={} pod={pod}",
        container.name
    );
    waiting("CrashLoopBackOff", Some(message))
}

fn waiting(reason: &str, message: Option<String>) -> ContainerState {
    let reason = Some(reason.to_owned());
    ContainerState {
        waiting: Some(ContainerStateWaiting { reason, message }),
        ..ContainerState::default()
    }
}

fn terminated(end: &Ended) -> ContainerState {
    let reason = match end.code {
        _ if end.never_ran => START_ERROR,
        0 => "Completed",
        _ => "Error",
    };
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: end.code,
            reason: Some(reason.to_owned()),
            message: end.message.clone(),
            started_at: Some(moment(end.began)),
            finished_at: Some(moment(end.ended)),
            container_id: Some(format!("process://{}", end.id)),
            signal: None,
        }),
        ..ContainerState::default()
    }
}
