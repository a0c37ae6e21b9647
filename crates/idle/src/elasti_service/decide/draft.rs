//! A decision in the making.

use std::time::Duration;

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use neap_kit::{event::EventDraft, status::Readiness};

use super::{Decision, Inquiry, conditions, goal::NEEDED, plan};
use crate::{
    api::{Breakdown, ElastiServiceStatus, LastWake, Mode},
    elasti_service::{
        facts::{Facts, resting},
        objects,
    },
    reason::Reason,
    target::{Keda, Target},
    trigger::Verdict,
    wake::needed_by,
};

/// The cause of a wake that no decision and no request explains.
const SCALED: &str = "Scaled";
/// How often it is checked whether the API server has the kind of the target by now.
const KIND_RETRY_DELAY: Duration = Duration::from_mins(1);
/// The delay before the parts of a wake are measured again, if they are not known yet.
const MEASURE_RETRY_DELAY: Duration = Duration::from_secs(2);
/// How often it is checked whether resolvers of another kind were replaced by ours.
const OTHER_RESOLVERS_RETRY_DELAY: Duration = Duration::from_secs(5);

/// What happens to the finalizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finalizer {
    Leave,
    /// It is added before any object is made that has to be deleted again.
    Add,
    /// It is removed after everything else.
    Remove,
    /// It is removed, and nothing else is done.
    Abandon,
}

/// What happens to the slices that add resolvers to the Service.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SliceChange {
    Leave,
    /// They have to be equal to these.
    Want(Vec<EndpointSlice>),
    Remove,
}

/// A write of the target's replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScaleWrite {
    pub(super) replicas: i32,
    /// Only if the target is unchanged since it was read. A wake is written in any case.
    pub(super) if_unchanged: bool,
}

/// What happens to a workload that sleeps and that the spec no longer names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FormerRestore {
    /// The number of replicas; none if it runs or does not exist.
    pub(super) replicas: Option<i32>,
    /// Whether its ScaledObject is resumed.
    pub(super) resume: bool,
}

pub(super) struct Draft<'a> {
    pub(super) facts: &'a Facts,
    pub(super) finalizer: Finalizer,
    /// The desired private Service; none if it is left as it is.
    pub(super) private: Option<Box<Service>>,
    pub(super) slices: SliceChange,
    /// Whether a slice of KubeElasti may exist that no watch shows, and is deleted.
    pub(super) delete_foreign_slice: bool,
    /// Whether the ScaledObject is paused or resumed.
    pub(super) pause_keda: Option<bool>,
    pub(super) scale: Option<ScaleWrite>,
    pub(super) restore: Option<FormerRestore>,
    /// Ports to be recorded as freed, before the status no longer has them.
    pub(super) freed_ports: Vec<i32>,
    pub(super) status: ElastiServiceStatus,
    pub(super) events: Vec<EventDraft>,
    /// Events to record about the owners of the ElastiService, which remain when it is deleted.
    pub(super) owner_events: Vec<EventDraft>,
    pub(super) inquiry: Option<Inquiry>,
    pub(super) requeue_after: Option<Duration>,
    pub(super) readiness: Option<Readiness>,
    /// The message of the condition `WouldSleep`, if a service that is only observed would sleep.
    pub(super) would_sleep: Option<String>,
    /// Whether another controller scaled it back, where that is known anew.
    pub(super) scaled_back: Option<bool>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(facts: &'a Facts) -> Self {
        Self {
            facts,
            finalizer: Finalizer::Leave,
            private: None,
            slices: SliceChange::Leave,
            delete_foreign_slice: false,
            pause_keda: None,
            scale: None,
            restore: None,
            freed_ports: Vec::new(),
            status: facts.status(),
            events: Vec::new(),
            owner_events: Vec::new(),
            inquiry: None,
            requeue_after: None,
            readiness: None,
            would_sleep: None,
            scaled_back: None,
        }
    }

    pub(super) fn finish(mut self, reason: Reason) -> Decision {
        conditions::update(&mut self);
        let facts = self.facts;
        let no_kind = facts.target == Target::Missing && facts.target_kind.is_none();
        if no_kind && !matches!(self.inquiry, Some(Inquiry::Proof(_))) {
            self.requeue_after = Some(KIND_RETRY_DELAY);
        }
        if facts.has_other_resolvers {
            self.requeue_after(OTHER_RESOLVERS_RETRY_DELAY);
        }
        Decision {
            plan: plan::plan(&self, &reason),
            status: self.status,
            events: self.events,
            owner_events: self.owner_events,
            requeue_after: self.requeue_after,
            reason,
            inquiry: self.inquiry,
        }
    }

    pub(super) fn requeue_after(&mut self, delay: Duration) {
        let earlier = self.requeue_after.filter(|known| *known <= delay);
        self.requeue_after = earlier.or(Some(delay));
    }

    pub(super) fn requeue_after_opt(&mut self, delay: Option<Duration>) {
        if let Some(delay) = delay {
            self.requeue_after(delay);
        }
    }

    pub(super) fn ready(&mut self, reason: &'static str, message: &str) {
        self.readiness = Some(Readiness::Ready(reason, message.to_owned()));
    }

    pub(super) fn reconciling(&mut self, reason: &'static str, message: &str) -> Reason {
        self.readiness = Some(Readiness::Reconciling(reason, message.to_owned()));
        Reason::new(reason, message)
    }

    pub(super) fn stalled(&mut self, reason: &'static str, message: impl Into<String>) -> Reason {
        let message = message.into();
        self.readiness = Some(Readiness::Stalled(reason, message.clone()));
        Reason::new(reason, message)
    }

    pub(super) fn set_mode(&mut self, mode: Mode) {
        if self.status.mode != Some(mode) {
            self.status.mode = Some(mode);
            self.status.last_reconciled_time = Some(self.facts.now);
        }
    }

    /// Brings resolvers into the path, only on ports that are in the status already: resolvers that read it
    /// listen there.
    pub(super) fn want_slices(&mut self) {
        let Facts {
            service,
            public,
            resolvers,
            slices,
            ..
        } = self.facts;
        let ports = self.facts.own_ports(&self.status);
        // No client of a headless Service reaches a resolver. Existing slices stay until pods are ready,
        // and no new ones are made.
        let useless = self.facts.is_headless() && slices.is_empty();
        if let Some(public) = public.as_ref().filter(|_| !ports.is_empty() && !useless) {
            self.set_mode(Mode::Proxy);
            // Without a ready resolver nothing is written: a slice of KubeElasti, which no watch of ours
            // shows, may lead to its resolvers.
            if resolvers.is_empty() && slices.is_empty() {
                return;
            }
            let wanted = objects::slices(service, public, &ports, resolvers, slices);
            self.slices = SliceChange::Want(wanted);
        }
    }

    /// Whether the desired slices exist and are equal.
    pub(super) fn has_slices(&self) -> bool {
        let SliceChange::Want(wanted) = &self.slices else {
            return false;
        };
        let live = &self.facts.slices;
        let exists = |slice: &EndpointSlice| live.iter().any(|live| **live == *slice);
        !wanted.is_empty() && wanted.iter().all(exists)
    }

    /// Records that the service sleeps, whether by a decision or because a user scaled it to zero.
    pub(super) fn sleep(&mut self) {
        let message = "resolvers answer for it until the next request";
        if self.status.asleep_since.is_none() {
            self.status.asleep_since = Some(self.facts.now);
            self.events.push(EventDraft::normal("FellAsleep", message));
        }
        self.status.hand_off = None;
        self.status.resting = Some(resting(&self.facts.service.spec));
        self.want_slices();
        self.ready("Asleep", message);
    }

    /// Scales the target up.
    pub(super) fn wake(&mut self, why: &Reason, replicas: i32) {
        self.resume_keda();
        self.scale = Some(ScaleWrite {
            replicas,
            if_unchanged: false,
        });
        self.status.hand_off = None;
        self.record_wake(Some(why));
    }

    /// Records that the service is awake: once, whether a decision, an operator's waker or a user woke it.
    pub(super) fn record_wake(&mut self, cause: Option<&Reason>) {
        let Some(asleep) = self.status.asleep_since.take() else {
            return;
        };
        let now = self.facts.now;
        let slept = self.facts.since(asleep);
        let replicas = self.status.replicas_before.take().unwrap_or(1).max(1);
        // A sleep that began while no pod was ready saved nothing that was of use.
        let useful = self.status.not_ready.take().is_none();
        let seconds = i64::try_from(slept.as_secs()).unwrap_or(i64::MAX);
        let saved = seconds.saturating_mul(replicas.into());
        let saved = if useful { saved } else { 0 };
        let sum = self.status.saved_replica_seconds.unwrap_or(0);
        self.status.saved_replica_seconds = Some(sum.saturating_add(saved));
        let wake = self.status.last_wake.as_ref();
        let recorded = wake.is_some_and(|wake| wake.time >= asleep);
        // One unexplained wake may be a user, or a waker that has not recorded it yet.
        let unexplained_before = wake.is_some_and(|wake| wake.cause == SCALED);
        if !recorded {
            let cause = self.wake_cause(cause);
            let message = format!("woken: {cause}");
            self.status.last_wake = Some(LastWake {
                time: now,
                cause,
                breakdown: None,
            });
            self.events.push(EventDraft::normal("Woke", message));
        }
        let soon = slept < self.facts.timeouts.scaled_back;
        self.scaled_back = Some(!recorded && cause.is_none() && unexplained_before && soon);
        self.status.last_scaled_up_time = Some(now);
    }

    /// The text of a cause in the status: the name of the reason, or the service that needs this one, in the
    /// words of a wake by request.
    fn wake_cause(&self, cause: Option<&Reason>) -> String {
        match (cause, &self.facts.dependent_wake) {
            (Some(cause), Some(wake)) if cause.name == NEEDED => needed_by(&wake.name),
            (Some(cause), _) => cause.name.to_owned(),
            (None, _) => SCALED.to_owned(),
        }
    }

    /// Has the parts of the last wake measured, once its pods are ready.
    pub(super) fn measure_wake(&mut self) {
        let facts = self.facts;
        let Some(wake) = &mut self.status.last_wake else {
            return;
        };
        let recent = facts.until(wake.time, facts.timeouts.deletion).is_some();
        if facts.ready_pods == 0 || !recent || wake.breakdown.is_some_and(Breakdown::is_whole) {
            return;
        }
        if let Some(found) = facts.breakdown {
            wake.breakdown = Some(found);
        } else {
            self.inquiry = Some(Inquiry::WakeBreakdown);
            self.requeue_after(MEASURE_RETRY_DELAY);
        }
    }

    /// Resumes KEDA, if the pause is ours.
    pub(super) fn resume_keda(&mut self) {
        if matches!(self.facts.keda, Keda::Found { by_us: true, .. }) {
            self.pause_keda = Some(false);
        }
    }

    /// Records the last request from time to time: often enough for the cooldown, and not each time.
    pub(super) fn record_activity(&mut self) {
        let Verdict::Busy(reason) = &self.facts.verdict else {
            return;
        };
        let request_at = reason.last_request_at.unwrap_or(self.facts.now);
        let last = self.status.last_scaled_up_time;
        let interval = self.facts.service.spec.cooldown() / 4;
        let passed = |last| Duration::try_from(request_at.duration_since(last)).unwrap_or_default();
        if last.is_none_or(|last| passed(last) >= interval) {
            self.status.last_scaled_up_time = Some(request_at);
        }
    }
}
