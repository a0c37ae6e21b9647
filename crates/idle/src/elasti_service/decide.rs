//! The decision about one service: a pure function of the facts. No client, no clock, no randomness.
//!
//! One decision is one step: its writes show in the facts of the next. An operator that stops between two
//! writes, or writes twice, comes to the same result.

mod conditions;
mod draft;
mod failing;
mod goal;
mod hand_off;
mod leave;
mod plan;
mod restore;
#[cfg(test)]
mod tests;

use std::time::Duration;

use kube::ResourceExt;
use neap_kit::{apply::Plan, event::EventDraft, status::Readiness};

pub use self::plan::ServiceChange;
use self::{
    draft::{Draft, Finalizer, ScaleWrite},
    goal::Goal,
};
use super::{facts::Facts, objects, reachability::Claim};
use crate::{
    api::{ElastiServiceStatus, FINALIZER, Mode, annotations::OFF},
    reason::Reason,
    target::Target,
    trigger::Verdict,
};

/// The delay before a target that could not be read is read again.
const TARGET_RETRY_DELAY: Duration = Duration::from_secs(5);

/// What is to be done now, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The writes, in order.
    pub plan: Plan<ServiceChange>,
    /// The status afterwards.
    pub status: ElastiServiceStatus,
    /// The Events to record.
    pub events: Vec<EventDraft>,
    /// The Events to record about the owners of the ElastiService.
    pub owner_events: Vec<EventDraft>,
    /// When there has to be another decision, if no change causes one before.
    pub requeue_after: Option<Duration>,
    /// Why.
    pub reason: Reason,
    /// A fact that has to be found out for the next decision.
    pub inquiry: Option<Inquiry>,
}

/// A fact that the controller finds out only on request, because that takes time or many calls.
#[derive(Debug, Clone, PartialEq)]
pub enum Inquiry {
    /// Whether this claim holds. It is checked after the plan is carried out.
    Proof(Claim),
    /// The time that each part of the last wake took.
    WakeBreakdown,
}

impl Decision {
    /// The claim that has to be proved.
    pub fn claim(&self) -> Option<&Claim> {
        match &self.inquiry {
            Some(Inquiry::Proof(claim)) => Some(claim),
            _ => None,
        }
    }

    /// Whether the target is scaled to zero.
    pub fn scales_to_zero(&self) -> bool {
        self.plan.iter().any(|change| change.scales_to() == Some(0))
    }
}

/// Decides what is to be done.
pub fn decide(facts: &Facts) -> Decision {
    let mut draft = Draft::new(facts);
    let finalizers = facts.service.finalizers();
    let has_finalizer = finalizers.iter().any(|one| one == FINALIZER);
    if let Some(former) = facts.former.as_ref().filter(|_| has_finalizer) {
        let reason = restore::restore(&mut draft, former);
        return draft.finish(reason);
    }
    if facts.is_deleted() {
        if has_finalizer {
            leave::leave(&mut draft);
        }
        return draft.finish(Reason::new(
            "Terminating",
            "the ElastiService is being deleted",
        ));
    }
    if !has_finalizer {
        draft.finalizer = Finalizer::Add;
        return draft.finish(Reason::new(
            "Initializing",
            "the ElastiService was not reconciled before",
        ));
    }
    let reason = reconcile(&mut draft);
    draft.finish(reason)
}

fn reconcile(draft: &mut Draft<'_>) -> Reason {
    let facts = draft.facts;
    if let Some(rival) = &facts.rival {
        let message = format!("the ElastiService {rival} is responsible for the same Service");
        return draft.stalled("ServiceTaken", message);
    }
    let Some(public) = &facts.public else {
        let name = &facts.service.spec.service;
        return draft.stalled("ServiceMissing", format!("there is no Service {name}"));
    };
    if let Some(why) = objects::unsuitable(public) {
        return draft.stalled("ServiceUnsuitable", why);
    }
    // A slice that KubeElasti left in the path of running pods is deleted. While the service sleeps, its
    // slice is taken over instead.
    let status = facts.service.status.as_ref();
    let is_new = status.is_none_or(|status| status.observed_generation.is_none());
    let runs = facts.target.replicas().is_some_and(|replicas| replicas > 0);
    draft.delete_foreign_slice = is_new && runs && draft.status.mode != Some(Mode::Proxy);
    match &facts.target {
        Target::Missing => {
            let target = &facts.service.spec.scale_target_ref;
            let message = format!("there is no {} {}", target.kind, target.name);
            return draft.stalled("TargetMissing", message);
        }
        Target::Unknown => {
            draft.requeue_after(TARGET_RETRY_DELAY);
            return Reason::new("TargetUnknown", "the API server did not return the target");
        }
        Target::Scaled { .. } => {}
    }
    if facts.is_observed() && !goal::has_slept(&draft.status) {
        // No object is made for it.
        return pursue_goal(draft);
    }
    if let Ok(granted) = &facts.ports
        && granted.ports != draft.status.ports
    {
        draft.freed_ports.clone_from(&granted.freed);
        draft.status.ports.clone_from(&granted.ports);
        let message = "resolvers learn on which ports to listen for it";
        return draft.reconciling("GivingPorts", message);
    }
    let private = objects::private(&facts.service, public, facts.private.as_deref());
    draft.private = Some(Box::new(private));
    pursue_goal(draft)
}

/// Compares the goal with the state, and takes the next step.
fn pursue_goal(draft: &mut Draft<'_>) -> Reason {
    let facts = draft.facts;
    failing::record(draft);
    let goal = goal::goal(facts, &draft.status);
    conditions::record_observation(draft, &goal);
    if !matches!(goal, Goal::Sleep(_)) {
        draft.record_activity();
    }
    goal::record_estimate(draft);
    draft.requeue_after_opt(facts.until_next_request());
    let reason = goal.reason().clone();
    match (facts.target.replicas().unwrap_or(0), goal) {
        (0, Goal::Awake(why)) => {
            draft.wake(&why, facts.service.spec.wake_replicas());
            draft.want_slices();
            draft.reconciling("Waking", "the service is being woken");
        }
        (0, goal) => {
            if facts.is_observed() {
                draft.ready("Observed", "the service is only observed");
            } else {
                draft.sleep();
            }
            draft.requeue_after_opt(goal.requeue_after());
        }
        (replicas, Goal::Sleep(_)) if !facts.is_observed() => {
            draft.record_wake(None);
            hand_off::to_resolvers(draft, replicas);
        }
        (replicas, goal) => {
            let cause = match &goal {
                Goal::Awake(why) => Some(why),
                _ => None,
            };
            draft.record_wake(cause);
            draft.resume_keda();
            hold_minimum(draft, replicas, cause);
            draft.requeue_after_opt(goal.requeue_after());
            serve(draft);
        }
    }
    failing::summarize(draft);
    if let Some((reason, message)) = goal::obstacle(facts) {
        draft.readiness = Some(Readiness::Stalled(reason, message));
    }
    reason
}

/// While the service is in use, it has at least the replicas that it wakes to, as in KubeElasti.
fn hold_minimum(draft: &mut Draft<'_>, replicas: i32, cause: Option<&Reason>) {
    let facts = draft.facts;
    let minimum = facts.service.spec.wake_replicas();
    let in_use = cause.is_some() && matches!(facts.verdict, Verdict::Busy(_));
    if in_use && replicas < minimum && !facts.is_observed() {
        draft.scale = Some(ScaleWrite {
            replicas: minimum,
            if_unchanged: true,
        });
    }
}

/// The service is awake and stays so.
fn serve(draft: &mut Draft<'_>) {
    let facts = draft.facts;
    draft.status.replicas_before = None;
    draft.status.resting = None;
    let counts = facts.service.spec.counts_requests() && !facts.is_headless();
    if counts && !facts.is_observed() && facts.ports.is_ok() {
        draft.status.hand_off = None;
        draft.want_slices();
        if facts.ready_pods == 0 {
            draft.reconciling("Waking", hand_off::WAITING_FOR_PODS);
            return;
        }
        let message = "its pods answer, and resolvers stay in the path to count the requests that \
                       reach them";
        awake(draft, "InPath", message);
        draft.measure_wake();
        return;
    }
    let has_resolvers = !facts.slices.is_empty()
        || draft.status.mode == Some(Mode::Proxy)
        || draft.status.hand_off.is_some();
    if has_resolvers && !hand_off::to_pods(draft) {
        return;
    }
    draft.set_mode(Mode::Serve);
    if !facts.has_ready_pod() {
        draft.reconciling("Waking", failing::NO_READY_POD);
        return;
    }
    awake(draft, "Awake", "clients reach its pods directly");
    draft.measure_wake();
}

/// Reports that it is awake, or that its namespace keeps it awake.
fn awake(draft: &mut Draft<'_>, reason: &'static str, message: &str) {
    if draft.facts.switches.off {
        let message = format!("{message}; no service of the namespace sleeps, where {OFF} is true");
        draft.ready("SwitchedOff", &message);
    } else {
        draft.ready(reason, message);
    }
}
