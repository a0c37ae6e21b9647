//! The states of the pods behind a service: whether one serves, and if not, why.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ContainerState, ContainerStatus, Pod, PodCondition, Service},
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, ObjectList},
};
use neap_kit::{key::Key, why::chain};

use super::FactSources;
use crate::{
    api::{ElastiService, NotReadyCause},
    target::{Target, canonical_kind},
    trigger::Verdict,
};

/// The time after a wake during which pods are not read: most are ready sooner.
pub(in crate::elasti_service) const FIRST_LOOK: Duration = Duration::from_secs(5);
/// A container that was restarted this often, the last time within [`CRASH_MEMORY`], keeps crashing, whether
/// it runs at the moment or not.
const CRASHES: i32 = 2;
/// The longest that the kubelet waits between two restarts.
const CRASH_MEMORY: jiff::SignedDuration = jiff::SignedDuration::from_mins(5);
/// The longest text of another program that is passed on.
const MAX_DETAIL: usize = 300;

/// The states of all pods of a service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodStates {
    /// The number of pods that are ready at the moment.
    pub ready: usize,
    /// Whether those that are ready crash again and again.
    pub unstable: bool,
    /// Why pods are not ready, if none is or those that are do not stay.
    pub problem: Option<PodProblem>,
}

/// Why a pod is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodProblem {
    /// The cause.
    pub cause: NotReadyCause,
    /// The cause in a sentence. It has no times and counts: it is in the status, and each change is a write.
    pub message: String,
    /// Whether it does not pass by itself, as far as is known.
    pub definite: bool,
}

/// Whether the decision about a service needs the states of its pods: if none is known to be ready, and
/// before it sleeps. Right after a wake they are not read.
pub(super) fn are_needed(
    service: &ElastiService,
    target: &Target,
    ready_pods: usize,
    verdict: &Verdict,
    now: Timestamp,
) -> bool {
    let runs = target.replicas().is_some_and(|replicas| replicas > 0);
    let status = service.status.as_ref();
    let woken = status.and_then(|status| status.last_wake.as_ref());
    let starts = woken.is_some_and(|wake| now.duration_since(wake.time) < signed(FIRST_LOOK));
    let known = status.is_some_and(|status| status.not_ready.is_some());
    let missing = ready_pods == 0 && !starts;
    // A proof takes several decisions, which need no more than the first and the last of them.
    let hand_off = status.and_then(|status| status.hand_off.as_ref());
    let proving = hand_off.is_some_and(|hand_off| hand_off.proved.is_none());
    let may_sleep = matches!(verdict, Verdict::Idle(_)) && !proving;
    runs && (missing || known || may_sleep)
}

fn signed(time: Duration) -> jiff::SignedDuration {
    jiff::SignedDuration::try_from(time).unwrap_or(jiff::SignedDuration::MAX)
}

/// The states of `pods` at `now`.
pub(super) fn assess(pods: &[Pod], now: Timestamp) -> PodStates {
    let mut pods: Vec<_> = pods.iter().filter(|pod| is_current(pod)).collect();
    // The oldest of equal problems is reported, so that the report does not change with each pod.
    pods.sort_by_key(|pod| (pod.creation_timestamp().map(|time| time.0), pod.name_any()));
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    let stable = |pod: &&&Pod| is_ready(pod) && crashing(pod, now).is_none();
    if pods.iter().any(|pod| stable(&pod)) {
        return PodStates {
            ready,
            ..PodStates::default()
        };
    }
    let problems = pods.iter().map(|pod| problem(pod, now));
    let worst = problems.min_by_key(|problem| (!problem.definite, problem.cause));
    PodStates {
        ready,
        unstable: ready > 0,
        problem: Some(worst.unwrap_or_else(no_pods)),
    }
}

fn no_pods() -> PodProblem {
    PodProblem {
        cause: NotReadyCause::NoPods,
        message: "the workload has replicas, and no pod exists".to_owned(),
        definite: false,
    }
}

/// Why the API server refuses the pods of a Deployment, for example since a quota is used up. That may pass.
fn refusal(deployment: &Deployment) -> Option<PodProblem> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    let refused = conditions
        .iter()
        .find(|it| it.type_ == "ReplicaFailure" && it.status == "True")?;
    let why = detail(refused.message.as_deref().unwrap_or_default());
    Some(PodProblem {
        cause: NotReadyCause::PodsRefused,
        message: format!("its pods cannot be created{why}"),
        definite: false,
    })
}

/// Whether a pod is neither being deleted nor finished.
fn is_current(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && phase != Some("Succeeded")
}

fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|condition| condition.status == "True")
}

fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

fn containers(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.iter();
    status.flat_map(|status| {
        let first = status.init_container_statuses.iter().flatten();
        // Init containers that have completed are done.
        let first = first.filter(|it| !has_completed(it));
        first.chain(status.container_statuses.iter().flatten())
    })
}

fn has_completed(container: &ContainerStatus) -> bool {
    let state = container.state.as_ref();
    let ended = state.and_then(|state| state.terminated.as_ref());
    ended.is_some_and(|ended| ended.exit_code == 0)
}

/// The container that keeps crashing, if there is one.
fn crashing(pod: &Pod, now: Timestamp) -> Option<&ContainerStatus> {
    containers(pod).find(|container| {
        let waits = waiting(container).is_some_and(|(reason, _)| reason == "CrashLoopBackOff");
        let last = container.last_state.as_ref();
        let last = last.and_then(|state| state.terminated.as_ref());
        let ended = last.and_then(|ended| ended.finished_at.as_ref());
        let lately = ended.is_some_and(|ended| now.duration_since(ended.0) < CRASH_MEMORY);
        let failed = last.is_some_and(|ended| ended.exit_code != 0);
        waits || (failed && lately && container.restart_count >= CRASHES)
    })
}

fn waiting(container: &ContainerStatus) -> Option<(&str, &str)> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    Some((
        waiting.reason.as_deref().unwrap_or_default(),
        waiting.message.as_deref().unwrap_or_default(),
    ))
}

fn problem(pod: &Pod, now: Timestamp) -> PodProblem {
    let (cause, text, definite) = cause(pod, now);
    PodProblem {
        cause,
        message: format!("pod {}: {text}", pod.name_any()),
        definite,
    }
}

fn cause(pod: &Pod, now: Timestamp) -> (NotReadyCause, String, bool) {
    if let Some(container) = crashing(pod, now) {
        let (name, ended) = (&container.name, exit(container));
        let text = format!("the container {name} crashes again and again: {ended}");
        return (NotReadyCause::CrashLoop, text, true);
    }
    let status = pod.status.as_ref();
    if status.and_then(|status| status.phase.as_deref()) == Some("Failed") {
        let text = |text: Option<&String>| text.map_or("", String::as_str).to_owned();
        let reason = text(status.and_then(|status| status.reason.as_ref()));
        let message = detail(&text(status.and_then(|status| status.message.as_ref())));
        let text = format!("it has failed {reason}{message}");
        return (NotReadyCause::PodFailed, text.trim_end().to_owned(), true);
    }
    if let Some(found) = containers(pod).find_map(not_started) {
        return found;
    }
    let unscheduled = condition(pod, "PodScheduled").filter(|it| it.status != "True");
    if let Some(unscheduled) = unscheduled {
        let why = detail(unscheduled.message.as_deref().unwrap_or_default());
        // A node may be added for it.
        return (
            NotReadyCause::Unschedulable,
            format!("it cannot be scheduled{why}"),
            false,
        );
    }
    let running = |it: &&ContainerStatus| {
        let state: Option<&ContainerState> = it.state.as_ref();
        state.is_some_and(|state| state.running.is_some()) && !it.ready
    };
    if let Some(container) = containers(pod).find(running) {
        let name = &container.name;
        let probe = probe_of(pod, container);
        let text = format!("the container {name} runs, and {probe} has not succeeded");
        return (NotReadyCause::Probe, text, false);
    }
    let text = "its containers are being created".to_owned();
    (NotReadyCause::Starting, text, false)
}

/// Why a container is not started, if that is known.
fn not_started(container: &ContainerStatus) -> Option<(NotReadyCause, String, bool)> {
    let (name, image) = (&container.name, &container.image);
    if let Some(ended) = container
        .state
        .as_ref()
        .and_then(|it| it.terminated.as_ref())
    {
        let code = ended.exit_code;
        let text = format!("the container {name} ended with code {code}");
        return Some((NotReadyCause::CrashLoop, text, false));
    }
    let (reason, message) = waiting(container)?;
    match reason {
        "ErrImagePull"
        | "ImagePullBackOff"
        | "InvalidImageName"
        | "ErrImageNeverPull"
        | "ImageInspectError"
        | "RegistryUnavailable" => {
            let why = detail(pull_detail(message));
            let text = format!("the image {image} of the container {name} cannot be pulled{why}");
            // The first failure may be of the registry.
            Some((NotReadyCause::ImagePull, text, reason != "ErrImagePull"))
        }
        "" | "ContainerCreating" | "PodInitializing" => None,
        _ => {
            let why = detail(message);
            let text = format!("the container {name} cannot be created ({reason}){why}");
            Some((NotReadyCause::ContainerConfig, text, true))
        }
    }
}

/// The cause within a message of the kubelet, which wraps it while it waits for the next attempt.
fn pull_detail(message: &str) -> &str {
    if message.starts_with("Back-off pulling image") {
        message
            .split_once("ErrImagePull: ")
            .map_or("", |(_, cause)| cause)
    } else {
        message
    }
}

/// The text after a colon, without line breaks and not too long; nothing if it is empty.
fn detail(text: &str) -> String {
    let text = text.trim().chars().take(MAX_DETAIL);
    let text: String = text.map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.is_empty() {
        text
    } else {
        format!(": {text}")
    }
}

fn exit(container: &ContainerStatus) -> String {
    let state = |state: &Option<ContainerState>| state.as_ref()?.terminated.clone();
    let ended = state(&container.last_state).or_else(|| state(&container.state));
    let Some(ended) = ended else {
        return "its exit code is not known".to_owned();
    };
    let code = ended.exit_code;
    let out_of_memory = ended.reason.as_deref() == Some("OOMKilled");
    let why = if out_of_memory {
        " (it exceeded its memory limit)".to_owned()
    } else {
        detail(ended.message.as_deref().unwrap_or_default())
    };
    format!("it exited with code {code}{why}")
}

/// The probe that a running container waits for.
fn probe_of(pod: &Pod, container: &ContainerStatus) -> &'static str {
    let spec = pod.spec.iter().flat_map(|spec| &spec.containers);
    let spec = spec.into_iter().find(|it| it.name == container.name);
    let has_startup = spec.is_some_and(|it| it.startup_probe.is_some());
    let has_readiness = spec.is_some_and(|it| it.readiness_probe.is_some());
    if has_startup && container.started != Some(true) {
        "its startup probe"
    } else if has_readiness {
        "its readiness probe"
    } else {
        "a condition of the pod"
    }
}

impl FactSources {
    /// The states of the pods that `public` selects; none if they cannot be read.
    pub(super) async fn pod_states(
        &self,
        service: &ElastiService,
        public: &Service,
        now: Timestamp,
    ) -> Option<PodStates> {
        let pods = self.pods(service, public).await?;
        let mut states = assess(&pods.items, now);
        let none = states.problem.as_ref();
        if none.is_some_and(|problem| problem.cause == NotReadyCause::NoPods) {
            let refused = self.refused_pods(service).await;
            states.problem = refused.or(states.problem);
        }
        Some(states)
    }

    /// Why the pods of a Deployment cannot be created, as its controller reports it. Other kinds have no common
    /// field for that.
    async fn refused_pods(&self, service: &ElastiService) -> Option<PodProblem> {
        let target = &service.spec.scale_target_ref;
        if (&*target.api_version, canonical_kind(&target.kind)) != ("apps/v1", "Deployment") {
            return None;
        }
        let namespace = service.metadata.namespace.as_deref()?;
        let api: Api<Deployment> = Api::namespaced(self.context.client.clone(), namespace);
        refusal(&api.get(&target.name).await.ok()?)
    }

    /// The pods that the Service selects. They are listed only where a decision needs them.
    pub(super) async fn pods(
        &self,
        service: &ElastiService,
        public: &Service,
    ) -> Option<ObjectList<Pod>> {
        let namespace = service.metadata.namespace.as_deref()?;
        let labels = public.spec.as_ref()?.selector.iter().flatten();
        let labels: Vec<_> = labels
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if labels.is_empty() {
            return None;
        }
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), namespace);
        let selected = ListParams::default().labels(&labels.join(","));
        let log = |error| {
            let (service, error) = (Key::of(service), chain(&error));
            tracing::warn!(%service, error, "the states of its pods cannot be read");
        };
        pods.list(&selected).await.map_err(log).ok()
    }
}

#[cfg(test)]
mod tests;
