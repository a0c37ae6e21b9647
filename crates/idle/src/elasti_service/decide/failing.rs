//! Workloads whose pods do not become ready. They are not idle: sleep would hide that they cannot serve.

use std::time::Duration;

use neap_kit::{event::EventDraft, status::Readiness};

use super::{draft::Draft, goal::Goal};
use crate::{
    api::{ElastiServiceStatus, LastWake, NotReady},
    elasti_service::facts::{FIRST_LOOK, Facts, PodProblem, PodStates},
    reason::Reason,
};

/// The message while clients would reach pods directly and none is ready.
pub(super) const NO_READY_POD: &str = "no pod is ready";
/// How often the pods are read while they start: nothing else shows why they do not.
const START_INTERVAL: Duration = Duration::from_secs(5);
/// How often they are read once they count as failed.
const FAILED_INTERVAL: Duration = Duration::from_secs(30);

/// What is known about the pods of a workload that has replicas.
enum PodsState<'a> {
    Ready,
    /// None is ready, and why is not known yet.
    Unknown,
    NotReady(&'a PodProblem),
}

fn state(facts: &Facts) -> PodsState<'_> {
    let slices = facts.ready_pods > 0;
    match &facts.pods {
        // The slices are what resolvers and the data plane go by, unless the pods do not stay ready.
        Some(PodStates {
            problem: Some(problem),
            unstable,
            ..
        }) if *unstable || !slices => PodsState::NotReady(problem),
        None if !slices => PodsState::Unknown,
        _ => PodsState::Ready,
    }
}

/// Whether its pods cannot serve, for a reason that does not pass by itself.
pub(super) fn has_failed(facts: &Facts, status: &ElastiServiceStatus) -> bool {
    let known = status.not_ready.as_ref().is_some_and(|it| it.failed);
    match state(facts) {
        PodsState::Ready => false,
        PodsState::Unknown => known,
        PodsState::NotReady(problem) => known || problem.definite,
    }
}

/// Updates `status.notReady`: since when no pod is ready, why, and whether that counts as failed. What is
/// known stays while the workload has no replicas, so that its sleep does not hide it.
pub(super) fn record(draft: &mut Draft<'_>) {
    let facts = draft.facts;
    if facts.target.replicas().is_none_or(|replicas| replicas == 0) {
        return;
    }
    if draft.status.asleep_since.is_some() {
        // It was scaled up just now: what was known is of the time before its sleep, and the wake that is
        // about to be recorded still needs it.
        draft.requeue_after(FIRST_LOOK);
        return;
    }
    let problem = match state(facts) {
        PodsState::Ready => {
            if draft.status.not_ready.take().is_some_and(|it| it.failed) {
                let message = "a pod is ready again";
                draft.events.push(EventDraft::normal("PodsReady", message));
            }
            return;
        }
        PodsState::Unknown => {
            draft.requeue_after(START_INTERVAL);
            return;
        }
        PodsState::NotReady(problem) => problem,
    };
    let before = draft.status.not_ready.take();
    let since = before.as_ref().map_or(facts.now, |before| before.since);
    let limit = start_limit(facts);
    let left = facts.until(since, limit);
    let failed = problem.definite || left.is_none() || before.as_ref().is_some_and(|it| it.failed);
    let wake = match &before {
        Some(before) => before.wake,
        None => failed_wake(facts, &draft.status).map(|wake| wake.time),
    };
    draft.status.not_ready = Some(NotReady {
        since,
        reason: problem.cause.as_str().to_owned(),
        message: message(problem, before.as_ref()),
        failed,
        wake,
    });
    draft.requeue_after(if failed {
        FAILED_INTERVAL
    } else {
        START_INTERVAL
    });
    draft.requeue_after_opt(left);
}

/// The message of a problem. A kubelet reports some causes with and without their details in turn; the
/// details stay, so that the status does not change each time.
fn message(problem: &PodProblem, before: Option<&NotReady>) -> String {
    let known = before.filter(|it| it.reason == problem.cause.as_str());
    let known = known.filter(|it| it.message.starts_with(&problem.message));
    known.map_or_else(|| problem.message.clone(), |known| known.message.clone())
}

/// How long a start may take. A request that is held for longer is refused, so the wake has failed then.
fn start_limit(facts: &Facts) -> Duration {
    let seconds = facts.service.spec.deadline_seconds;
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    seconds.map_or(facts.timeouts.start, Duration::from_secs)
}

/// The last wake, if it was recent or no pod is known to have become ready since.
fn failed_wake<'a>(facts: &Facts, status: &'a ElastiServiceStatus) -> Option<&'a LastWake> {
    let wake = status.last_wake.as_ref()?;
    let succeeded = wake.breakdown.is_some_and(crate::api::Breakdown::is_whole);
    let recent = facts.until(wake.time, start_limit(facts)).is_some();
    (recent || !succeeded).then_some(wake)
}

/// Why a service that its triggers report idle does not sleep, if its pods cannot serve. After the time
/// that the operator's settings allow, it sleeps.
pub(super) fn sleepless(facts: &Facts, status: &ElastiServiceStatus) -> Option<Goal> {
    if facts.target.replicas() == Some(0) {
        return None;
    }
    let stay = |left| {
        let message = "its pods cannot serve, so it does not sleep as if it were idle";
        Some(Goal::Stay(Reason::new("PodsNotReady", message), left))
    };
    if let PodsState::Ready = state(facts) {
        return None;
    }
    let failed = status.not_ready.as_ref().filter(|it| it.failed);
    match (failed, facts.timeouts.failed_sleep) {
        (Some(failed), Some(limit)) => match facts.until(failed.since, limit) {
            Some(left) => stay(Some(left)),
            None => None,
        },
        _ => stay(None),
    }
}

/// Makes the summary tell that no pod serves, and why.
pub(super) fn summarize(draft: &mut Draft<'_>) {
    let runs = draft.facts.target.replicas().is_some_and(|it| it > 0);
    let Some(not_ready) = draft.status.not_ready.clone().filter(|_| runs) else {
        return;
    };
    let NotReady { message, wake, .. } = not_ready;
    // While it is scaled to zero, the decision is about its sleep.
    if draft.status.asleep_since.is_some() {
        return;
    }
    if not_ready.failed {
        let (reason, what) = match wake {
            Some(_) => ("WakeFailed", "no pod became ready after its last wake"),
            None => ("PodsFailing", "no pod is ready"),
        };
        draft.readiness = Some(Readiness::Stalled(reason, format!("{what}: {message}")));
    } else if let Some(Readiness::Reconciling("Waking", text)) = &draft.readiness {
        let text = format!("{text}; {message}");
        draft.readiness = Some(Readiness::Reconciling("Waking", text));
    }
}
