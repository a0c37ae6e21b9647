//! From pods to resolvers and back, never without a proof.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    super::{facts::Facts, prove::Question, resting::resting},
    Scale, Slices,
    draft::Draft,
};
use crate::{
    api::{HandOff, Mode, Towards},
    target::Keda,
};

/// What is said while it runs and nobody of it answers.
pub(super) const UNTIL_READY: &str = "resolvers hold what comes until a pod is ready";

/// One step towards sleep: resolvers come in, are proved to be reached, and after a grace the pods go.
pub(super) fn to_resolvers(draft: &mut Draft<'_>, replicas: i32) {
    let facts = draft.facts;
    draft.want_slices();
    draft.reconciling(
        "FallingAsleep",
        "resolvers take its place before its pods end",
    );
    let resting = resting(&facts.service.spec);
    let begun = draft.status.hand_off.clone();
    let Some(hand_off) = begun.filter(|begun| begun.towards == Towards::Resolvers) else {
        draft.status.hand_off = Some(begin(Towards::Resolvers, facts.now));
        draft.status.replicas_before = Some(replicas);
        draft.status.resting = Some(resting);
        return;
    };
    // Written down before anything ends: nobody could say afterwards.
    let noted = draft.status.replicas_before == Some(replicas)
        && draft.status.resting.as_ref() == Some(&resting);
    draft.status.replicas_before = Some(replicas);
    draft.status.resting = Some(resting);
    let Some(proved) = fresh(draft, &hand_off) else {
        if draft.has_slices() {
            try_to_prove(draft, &hand_off, true);
        }
        return;
    };
    if let Some(left) = facts.until(proved, facts.patience.grace) {
        draft.again(left);
    } else if noted && draft.has_slices() {
        let unchanged = true;
        draft.scale = Some(Scale {
            replicas: 0,
            unchanged,
        });
        if matches!(facts.keda, Keda::Found { paused: false, .. }) {
            draft.pause = Some(true);
        }
        draft.asleep();
    }
}

/// One step towards the pods: they are proved to be reached, resolvers go, and once more. Whether
/// that is done.
pub(super) fn to_pods(draft: &mut Draft<'_>) -> bool {
    let facts = draft.facts;
    if facts.ready_pods == 0 {
        draft.status.hand_off = None;
        draft.want_slices();
        draft.reconciling("Waking", UNTIL_READY);
        return false;
    }
    if facts.headless() && facts.slices.is_empty() {
        // Resolvers were never brought in here but by KubeElasti, whose slice no watch of ours shows.
        draft.status.hand_off = None;
        draft.stray = true;
        return true;
    }
    draft.reconciling(
        "HandingOver",
        "resolvers go once the data plane reaches its pods",
    );
    let begun = draft.status.hand_off.clone();
    let Some(hand_off) = begun.filter(|begun| begun.towards == Towards::Pods) else {
        draft.status.hand_off = Some(begin(Towards::Pods, facts.now));
        draft.want_slices();
        return false;
    };
    let gone = facts.slices.is_empty();
    match hand_off.proved {
        // Nobody else can be reached if no resolver is there.
        Some(_) if gone && facts.resolvers.is_empty() => draft.status.hand_off = None,
        Some(_) if gone => try_to_prove(draft, &hand_off, false),
        _ if fresh(draft, &hand_off).is_some() => {
            draft.slices = Slices::Remove;
            draft.mode(Mode::Serve);
        }
        _ => {
            draft.want_slices();
            if draft.has_slices() {
                try_to_prove(draft, &hand_off, true);
            }
        }
    }
    draft.status.hand_off.is_none()
}

fn begin(towards: Towards, since: Timestamp) -> HandOff {
    HandOff {
        towards,
        since,
        proved: None,
        resolvers: Vec::new(),
    }
}

/// When it was proved, if that still means something.
fn fresh(draft: &mut Draft<'_>, hand_off: &HandOff) -> Option<Timestamp> {
    let facts = draft.facts;
    let proved = hand_off.proved?;
    let old = facts.until(proved, facts.patience.fresh).is_none();
    // Whoever waits without a proof has asked nobody.
    let others = facts.blind().is_none() && hand_off.resolvers != addresses(facts);
    if let Some(hand_off) = draft.status.hand_off.as_mut().filter(|_| old || others) {
        hand_off.proved = None;
        hand_off.resolvers.clear();
        return None;
    }
    Some(proved)
}

fn addresses(facts: &Facts<'_>) -> Vec<String> {
    let resolvers = facts.resolvers.iter();
    resolvers.map(|it| it.address.to_string()).collect()
}

/// Takes the proof if it is there, and asks for it if not. `beside` resolvers pods answer, or alone.
fn try_to_prove(draft: &mut Draft<'_>, hand_off: &HandOff, beside: bool) {
    let facts = draft.facts;
    let question = Question {
        towards: hand_off.towards,
        since: hand_off.since,
        beside,
        resolvers: facts.resolvers.iter().map(|it| it.address).collect(),
    };
    let begun = if beside {
        Some(hand_off.since)
    } else {
        hand_off.proved
    };
    let proved = if facts.blind().is_some() {
        let begun = begun.unwrap_or(hand_off.since);
        let left = facts.until(begun, facts.patience.blind);
        draft.again_in(left);
        left.is_none()
    } else {
        let proof = facts.proof.as_ref();
        proof.is_some_and(|proof| proof.holds && proof.question == question)
    };
    if proved && beside {
        draft.status.hand_off = Some(HandOff {
            proved: Some(facts.now),
            resolvers: addresses(facts),
            ..hand_off.clone()
        });
        draft.again(Duration::ZERO);
    } else if proved {
        draft.status.hand_off = None;
    } else if facts.blind().is_none() && !facts.resolvers.is_empty() {
        draft.proof = Some(question);
    }
}
