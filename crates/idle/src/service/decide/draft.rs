//! A decision in the making.

use std::time::Duration;

use neap_kit::{event::Note, status::Standing};

use super::{
    super::{facts::Facts, objects, prove::Question, resting::resting, verdict::Because},
    Decision, Finalizer, Restore, Scale, Slices, tell,
};
use crate::{
    api::{Breakdown, ElastiServiceStatus, LastWake, Mode},
    service::verdict::Verdict,
    target::Keda,
};

/// It was scaled up, and nobody said why.
const SCALED: &str = "Scaled";

pub(super) struct Draft<'a> {
    pub(super) facts: &'a Facts<'a>,
    pub(super) finalizer: Finalizer,
    pub(super) private: Option<Box<k8s_openapi::api::core::v1::Service>>,
    pub(super) slices: Slices,
    pub(super) stray: bool,
    pub(super) pause: Option<bool>,
    pub(super) scale: Option<Scale>,
    pub(super) restore: Option<Restore>,
    pub(super) free: Vec<i32>,
    pub(super) status: ElastiServiceStatus,
    pub(super) notes: Vec<Note>,
    pub(super) proof: Option<Question>,
    pub(super) measure: bool,
    pub(super) again: Option<Duration>,
    pub(super) standing: Option<Standing>,
    /// What to say about whether it would sleep, if that is all that is asked.
    pub(super) would_sleep: Option<String>,
    /// Whether somebody works against us, where that is known anew.
    pub(super) conflict: Option<bool>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(facts: &'a Facts<'a>) -> Self {
        Self {
            facts,
            finalizer: Finalizer::Leave,
            private: None,
            slices: Slices::Leave,
            stray: false,
            pause: None,
            scale: None,
            restore: None,
            free: Vec::new(),
            status: facts.status(),
            notes: Vec::new(),
            proof: None,
            measure: false,
            again: None,
            standing: None,
            would_sleep: None,
            conflict: None,
        }
    }

    pub(super) fn done(mut self, because: Because) -> Decision {
        tell::tell(&mut self);
        Decision {
            finalizer: self.finalizer,
            private: self.private,
            slices: self.slices,
            stray: self.stray,
            pause: self.pause,
            scale: self.scale,
            restore: self.restore,
            free: self.free,
            status: self.status,
            notes: self.notes,
            proof: self.proof,
            measure: self.measure,
            again: self.again,
            because,
        }
    }

    pub(super) fn again(&mut self, after: Duration) {
        let sooner = self.again.is_none_or(|again| after < again);
        self.again = if sooner { Some(after) } else { self.again };
    }

    pub(super) fn again_in(&mut self, after: Option<Duration>) {
        if let Some(after) = after {
            self.again(after);
        }
    }

    pub(super) fn ready(&mut self, reason: &'static str, message: &str) {
        self.standing = Some(Standing::Ready(reason, message.to_owned()));
    }

    pub(super) fn reconciling(&mut self, reason: &'static str, message: &str) -> Because {
        self.standing = Some(Standing::Reconciling(reason, message.to_owned()));
        Because::new(reason, message)
    }

    pub(super) fn stalled(&mut self, reason: &'static str, message: impl Into<String>) -> Because {
        let message = message.into();
        self.standing = Some(Standing::Stalled(reason, message.clone()));
        Because::new(reason, message)
    }

    /// Who answers from now on.
    pub(super) fn mode(&mut self, mode: Mode) {
        if self.status.mode != Some(mode) {
            self.status.mode = Some(mode);
            self.status.last_reconciled_time = Some(self.facts.now);
        }
    }

    /// Resolvers are in the path. Only on ports that the status has had for a while: whoever reads
    /// it listens there by now.
    pub(super) fn want_slices(&mut self) {
        let Facts {
            service,
            public,
            resolvers,
            slices,
            ..
        } = self.facts;
        let ports = self.facts.own_ports(&self.status);
        // Nobody finds a resolver by way of a headless Service. What was brought in before stays
        // until pods are there, and nothing else comes.
        let useless = self.facts.headless() && slices.is_empty();
        if let Some(public) = public.filter(|_| !ports.is_empty() && !useless) {
            self.mode(Mode::Proxy);
            // No watch of ours shows a slice of KubeElasti, whose resolvers may still answer. With
            // nobody to put there it is left as it is.
            if resolvers.is_empty() && slices.is_empty() {
                return;
            }
            let wanted = objects::slices(service, public, &ports, resolvers, slices);
            self.slices = Slices::Want(wanted);
        }
    }

    /// Whether the slices that are wanted are there, as they should be.
    pub(super) fn has_slices(&self) -> bool {
        let Slices::Want(wanted) = &self.slices else {
            return false;
        };
        let live = &self.facts.slices;
        let is_there = |slice| live.contains(&slice);
        !wanted.is_empty() && wanted.iter().all(is_there)
    }

    /// It sleeps, whoever put it there.
    pub(super) fn asleep(&mut self) {
        if self.status.asleep_since.is_none() {
            self.status.asleep_since = Some(self.facts.now);
            let message = "resolvers answer for it until somebody asks";
            self.notes.push(Note::normal("FellAsleep", message));
        }
        self.status.hand_off = None;
        self.status.resting = Some(resting(&self.facts.service.spec));
        self.want_slices();
        self.ready("Asleep", "resolvers answer for it until somebody asks");
    }

    /// Has it run.
    pub(super) fn wake(&mut self, why: &Because, replicas: i32) {
        self.unpause();
        let unchanged = false;
        self.scale = Some(Scale {
            replicas,
            unchanged,
        });
        self.status.hand_off = None;
        self.woken(Some(why));
    }

    /// It runs. Told once, whoever woke it.
    pub(super) fn woken(&mut self, cause: Option<&Because>) {
        let Some(asleep) = self.status.asleep_since.take() else {
            return;
        };
        let now = self.facts.now;
        let slept = self.facts.since(asleep);
        let replicas = self.status.replicas_before.take().unwrap_or(1).max(1);
        let seconds = i64::try_from(slept.as_secs()).unwrap_or(i64::MAX);
        let saved = seconds.saturating_mul(replicas.into());
        let sum = self.status.saved_replica_seconds.unwrap_or(0);
        self.status.saved_replica_seconds = Some(sum.saturating_add(saved));
        let wake = self.status.last_wake.as_ref();
        let told = wake.is_some_and(|wake| wake.time >= asleep);
        // Once may be anybody, and whoever woke it may not have told yet.
        let before = wake.is_some_and(|wake| wake.cause == SCALED);
        if !told {
            let cause = cause.map_or(SCALED, |cause| cause.reason);
            self.status.last_wake = Some(LastWake {
                time: now,
                cause: cause.to_owned(),
                breakdown: None,
            });
            let message = format!("woken: {cause}");
            self.notes.push(Note::normal("Woke", message));
        }
        let soon = slept < self.facts.patience.scaled_back;
        self.conflict = Some(!told && cause.is_none() && before && soon);
        self.status.last_scaled_up_time = Some(now);
    }

    /// Has it found out where the time of the last wake went, once its pods answer.
    pub(super) fn measure(&mut self) {
        let facts = self.facts;
        let Some(wake) = &mut self.status.last_wake else {
            return;
        };
        let lately = facts.until(wake.time, facts.patience.giving_up).is_some();
        if facts.ready_pods == 0 || !lately || wake.breakdown.is_some_and(Breakdown::is_whole) {
            return;
        }
        match facts.breakdown {
            Some(found) => wake.breakdown = Some(found),
            None => self.measure = true,
        }
    }

    /// KEDA goes on, if it was us who stopped it.
    pub(super) fn unpause(&mut self) {
        if matches!(self.facts.keda, Keda::Found { by_us: true, .. }) {
            self.pause = Some(false);
        }
    }

    /// Notes that somebody asks, now and then: often enough for the cooldown, and not each time.
    pub(super) fn note_activity(&mut self) {
        let Verdict::Busy(because) = &self.facts.verdict else {
            return;
        };
        let asked = because.asked.unwrap_or(self.facts.now);
        let last = self.status.last_scaled_up_time;
        let often = self.facts.cooldown() / 4;
        let passed = |last| Duration::try_from(asked.duration_since(last)).unwrap_or_default();
        if last.is_none_or(|last| passed(last) >= often) {
            self.status.last_scaled_up_time = Some(asked);
        }
    }
}
