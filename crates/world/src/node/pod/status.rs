//! The status of a pod. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, HostIP, PodCondition, PodIP, PodStatus,
};

use super::{ContainerFacts, EndedProcess, Facts, ProcessState, START_ERROR, facts::is_sidecar};
use crate::workload::api_time;

/// The result of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PodResult {
    /// It is still active.
    Active,
    /// All its containers succeeded.
    Succeeded,
    /// It will not be restarted; with a reason if the node failed it.
    Failed(Option<(&'static str, String)>),
}

impl PodResult {
    pub(super) fn is_final(&self) -> bool {
        *self != Self::Active
    }
}

/// The status; fields that others write are left unchanged.
pub(super) fn status(facts: &Facts, result: &PodResult) -> PodStatus {
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
    status.phase = Some(phase(facts, result).to_owned());
    if let PodResult::Failed(Some((reason, message))) = result {
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
    status.start_time.get_or_insert(api_time(facts.accepted));
    for condition in conditions(facts, result, now_initialized) {
        set_condition(&mut status, condition, facts);
    }
    status
}

fn phase(facts: &Facts, result: &PodResult) -> &'static str {
    match result {
        PodResult::Succeeded => "Succeeded",
        PodResult::Failed(_) => "Failed",
        PodResult::Active => {
            let begun = |container: &Container| {
                facts.container(container).process != ProcessState::NotStarted
            };
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
        let observed = facts.container(container);
        if is_sidecar(container) {
            observed.started || observed.restarts > 0
        } else {
            observed.end().is_some_and(|end| end.code == 0)
        }
    })
}

/// A wanted condition: type, whether it is true, and the reason if not.
type WantedCondition = (&'static str, bool, Option<(&'static str, String)>);

fn conditions(facts: &Facts, result: &PodResult, initialized: bool) -> [WantedCondition; 4] {
    let names = |containers: &[Container], lacks: &dyn Fn(&ContainerFacts) -> bool| {
        let found = containers
            .iter()
            .filter(|container| lacks(&facts.container(container)));
        found
            .map(|container| container.name.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let incomplete = names(facts.init(), &|observed| {
        !(observed.started || observed.end().is_some_and(|end| end.code == 0))
    });
    let unready = names(facts.main(), &|observed| !observed.is_ready());
    let why_unready = match result {
        PodResult::Succeeded => Some(("PodCompleted", String::new())),
        PodResult::Failed(_) => Some(("PodFailed", String::new())),
        PodResult::Active if !unready.is_empty() => {
            let message = format!("containers with unready status: [{unready}]");
            Some(("ContainersNotReady", message))
        }
        PodResult::Active => None,
    };
    let gates = why_unready.clone().or_else(|| closed_gate(facts));
    let why_uninitialized = (!initialized && *result != PodResult::Succeeded).then(|| {
        let message = format!("containers with incomplete status: [{incomplete}]");
        ("ContainersNotInitialized", message)
    });
    let ended = result.is_final();
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

/// A readiness gate that is not true.
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

/// Sets a condition; its transition time changes only with its status.
fn set_condition(status: &mut PodStatus, (kind, is_true, why): WantedCondition, facts: &Facts) {
    let conditions = status.conditions.get_or_insert_default();
    let value = if is_true { "True" } else { "False" };
    let place = conditions
        .iter()
        .position(|condition| condition.type_ == kind);
    let since = place
        .filter(|&place| conditions[place].status == value)
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
        status: value.to_owned(),
        reason,
        message,
        last_transition_time: Some(since.unwrap_or(api_time(facts.now))),
        observed_generation: facts.pod.metadata.generation,
        ..PodCondition::default()
    };
    match place {
        Some(place) => conditions[place] = condition,
        None => conditions.push(condition),
    }
}

fn of_container(facts: &Facts, container: &Container, waits_for_init: bool) -> ContainerStatus {
    let observed = facts.container(container);
    let image = container.image.clone().unwrap_or_default();
    let id = match &observed.process {
        ProcessState::Running { id, .. } => Some(id),
        ProcessState::Ended(end) => Some(&end.id),
        ProcessState::NotStarted => None,
    };
    let done = observed.end().is_some_and(|end| end.code == 0);
    let state = state(facts, container, &observed, waits_for_init);
    // While it waits to be restarted, its last end is the previous state.
    let before = match &state.waiting {
        Some(_) => observed.end().or(observed.previous.as_ref()),
        None => observed.previous.as_ref(),
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
            observed.is_ready()
        },
        started: Some(observed.is_running() && observed.started),
        restart_count: observed.restarts,
        last_state: Some(before.map(terminated).unwrap_or_default()),
        state: Some(state),
        ..ContainerStatus::default()
    }
}

fn state(
    facts: &Facts,
    container: &Container,
    observed: &ContainerFacts,
    waits_for_init: bool,
) -> ContainerState {
    if let ProcessState::Running { since, .. } = &observed.process {
        let started_at = Some(api_time(*since));
        return ContainerState {
            running: Some(ContainerStateRunning { started_at }),
            ..ContainerState::default()
        };
    }
    if let Some(wait_reason) = &observed.wait_reason {
        return waiting(wait_reason.reason, Some(wait_reason.message.clone()));
    }
    if let Some(end) = observed.end() {
        return match observed
            .backoff_until()
            .filter(|_| is_restarted(facts, container, end))
        {
            Some(moment) if moment > facts.now => crash_loop(facts, container, moment, end),
            _ => terminated(end),
        };
    }
    match &facts.volumes {
        Err(wait_reason) => waiting("ContainerCreating", Some(wait_reason.message.clone())),
        Ok(()) if waits_for_init => waiting("PodInitializing", None),
        Ok(()) => waiting("ContainerCreating", None),
    }
}

fn is_restarted(facts: &Facts, container: &Container, end: &EndedProcess) -> bool {
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
    end: &EndedProcess,
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

fn terminated(end: &EndedProcess) -> ContainerState {
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
            started_at: Some(api_time(end.began)),
            finished_at: Some(api_time(end.ended)),
            container_id: Some(format!("process://{}", end.id)),
            signal: None,
        }),
        ..ContainerState::default()
    }
}
