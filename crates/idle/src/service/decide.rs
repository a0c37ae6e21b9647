//! What follows from the facts. No server, no clock, no chance.
//!
//! One decision is one step: what it writes shows in the facts of the next. Whoever dies between two
//! writes, or writes twice, comes to the same end.

mod draft;
mod hand_off;
mod leave;
mod restore;
mod tell;
#[cfg(test)]
mod tests;
mod wish;

use std::time::Duration;

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::ResourceExt;
use neap_kit::{event::Note, status::Standing};

use self::{draft::Draft, wish::Wish};
use super::{facts::Facts, objects, prove::Question, switches::OFF, verdict::Because};
use crate::{
    api::{ElastiServiceStatus, FINALIZER, Mode},
    target::Target,
};

/// What is to be done now, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Whether the object is held until we are done with it.
    pub finalizer: Finalizer,
    /// The private Service as it should be; nothing if it is left as it is.
    pub private: Option<Box<Service>>,
    /// What is to become of the slices.
    pub slices: Slices,
    /// Whether a slice of KubeElasti may be left that no watch shows, and is to go.
    pub stray: bool,
    /// Whether KEDA is to stand still.
    pub pause: Option<bool>,
    /// How many are to run.
    pub scale: Option<Scale>,
    /// What is done for what slept before and is no longer named.
    pub restore: Option<Restore>,
    /// Ports to be written down as freed, before the status no longer has them.
    pub free: Vec<i32>,
    /// The status afterwards.
    pub status: ElastiServiceStatus,
    /// What is told.
    pub notes: Vec<Note>,
    /// What is to be proved next.
    pub proof: Option<Question>,
    /// Whether somebody has to find out where the time of its last wake went.
    pub measure: bool,
    /// When to look again at the latest.
    pub again: Option<Duration>,
    /// Why.
    pub because: Because,
}

/// What is done with the finalizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finalizer {
    /// Nothing.
    Leave,
    /// It is put there, before anything is made that has to be taken away again.
    Add,
    /// It is taken away, after everything else.
    Remove,
}

/// What is to become of the slices that bring resolvers in.
#[derive(Debug, Clone, PartialEq)]
pub enum Slices {
    /// They are left as they are.
    Leave,
    /// They are to be these.
    Want(Vec<EndpointSlice>),
    /// There are to be none.
    Remove,
}

/// A write of how many are to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// So many.
    pub replicas: i32,
    /// Only if it is still as it was looked at. What is woken is woken in any case.
    pub unchanged: bool,
}

/// What is done for what slept before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restore {
    /// So many are to run of it; nothing if it runs or is gone.
    pub replicas: Option<i32>,
    /// Whether KEDA is to go on.
    pub resume: bool,
}

/// Decides.
pub fn decide(facts: &Facts<'_>) -> Decision {
    let mut draft = Draft::new(facts);
    let finalizers = facts.service.finalizers();
    let held = finalizers.iter().any(|one| one == FINALIZER);
    if let Some(former) = facts.former.as_ref().filter(|_| held) {
        let because = restore::restore(&mut draft, former);
        return draft.done(because);
    }
    if facts.service.metadata.deletion_timestamp.is_some() {
        if held {
            leave::leave(&mut draft);
        }
        return draft.done(Because::new("Leaving", "it is being deleted"));
    }
    if !held {
        draft.finalizer = Finalizer::Add;
        return draft.done(Because::new("Beginning", "it was not looked after before"));
    }
    let because = look_after(&mut draft);
    draft.done(because)
}

fn look_after(draft: &mut Draft<'_>) -> Because {
    let facts = draft.facts;
    if let Some(rival) = &facts.rival {
        let message = format!("{rival} looks after the same Service already");
        return draft.stalled("ServiceTaken", message);
    }
    let Some(public) = facts.public else {
        let name = &facts.service.spec.service;
        return draft.stalled("ServiceMissing", format!("there is no Service {name}"));
    };
    if let Some(why) = objects::unsuitable(public) {
        return draft.stalled("ServiceUnsuitable", why);
    }
    // What KubeElasti left in the path of pods that answer. While it sleeps its slice is made ours.
    let unseen = facts.service.status.as_ref();
    let unseen = unseen.is_none_or(|status| status.observed_generation.is_none());
    let runs = facts.target.replicas().is_some_and(|replicas| replicas > 0);
    draft.stray = unseen && runs && draft.status.mode != Some(Mode::Proxy);
    match &facts.target {
        Target::Missing => {
            let target = &facts.service.spec.scale_target_ref;
            let message = format!("there is no {} {}", target.kind, target.name);
            return draft.stalled("TargetMissing", message);
        }
        Target::Unknown => {
            draft.again(Duration::from_secs(5));
            return Because::new("TargetUnknown", "the server does not say what runs");
        }
        Target::Scaled { .. } => {}
    }
    if facts.observed() && !wish::slept(&draft.status) {
        // Nothing is made for it.
        return by_wish(draft);
    }
    if let Ok(granted) = &facts.ports
        && granted.ports != draft.status.ports
    {
        draft.free.clone_from(&granted.freed);
        draft.status.ports.clone_from(&granted.ports);
        let message = "resolvers are told on which ports to listen for it";
        return draft.reconciling("GivingPorts", message);
    }
    draft.private = Some(Box::new(objects::private(
        facts.service,
        public,
        facts.private,
    )));
    by_wish(draft)
}

/// Brings together what it should be doing with what it does.
fn by_wish(draft: &mut Draft<'_>) -> Because {
    let facts = draft.facts;
    let wish = wish::wish(facts, &draft.status);
    tell::observed(draft, &wish);
    if !matches!(wish, Wish::Sleep(_)) {
        draft.note_activity();
    }
    draft.again_in(facts.unheard());
    let because = wish.because().clone();
    match (facts.target.replicas().unwrap_or(0), wish) {
        (0, Wish::Awake(why)) => {
            draft.wake(&why, facts.minimum());
            draft.want_slices();
            draft.reconciling("Waking", "it is being woken");
        }
        (0, wish) => {
            if facts.observed() {
                draft.ready("Observed", "it is only observed");
            } else {
                draft.asleep();
            }
            draft.again_in(wish.again());
        }
        (replicas, Wish::Sleep(_)) if !facts.observed() => {
            draft.woken(None);
            hand_off::to_resolvers(draft, replicas);
        }
        (_, wish) => {
            let cause = match &wish {
                Wish::Awake(why) => Some(why),
                _ => None,
            };
            draft.woken(cause);
            draft.unpause();
            draft.again_in(wish.again());
            serve(draft);
        }
    }
    if let Some((reason, message)) = wish::problem(facts) {
        draft.standing = Some(Standing::Stalled(reason, message));
    }
    because
}

/// It is awake, and to stay so.
fn serve(draft: &mut Draft<'_>) {
    let facts = draft.facts;
    draft.status.replicas_before = None;
    draft.status.resting = None;
    let counts = facts.counts() && !facts.headless();
    if counts && !facts.observed() && facts.ports.is_ok() {
        draft.status.hand_off = None;
        draft.want_slices();
        if facts.ready_pods == 0 {
            draft.reconciling("Waking", hand_off::UNTIL_READY);
            return;
        }
        let message = "its pods answer, and resolvers stay beside them to count the share of \
                       connections that comes to them";
        awake(draft, "InPath", message);
        draft.measure();
        return;
    }
    let between = !facts.slices.is_empty()
        || draft.status.mode == Some(Mode::Proxy)
        || draft.status.hand_off.is_some();
    if between && !hand_off::to_pods(draft) {
        return;
    }
    draft.mode(Mode::Serve);
    awake(draft, "Awake", "nobody is between clients and its pods");
    draft.measure();
}

/// Says so, or that it has to be, whoever asks for it or does not.
fn awake(draft: &mut Draft<'_>, reason: &'static str, message: &str) {
    if draft.facts.switches.off {
        let message = format!("{message}; nothing sleeps in its namespace: {OFF} is true there");
        draft.ready("SwitchedOff", &message);
    } else {
        draft.ready(reason, message);
    }
}
