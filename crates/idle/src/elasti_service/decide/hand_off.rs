//! Hand-offs between pods and resolvers, never without a proof.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    Inquiry,
    draft::{Draft, ScaleWrite, SliceChange},
};
use crate::{
    api::{HandOff, Mode, Towards},
    elasti_service::{
        facts::{Facts, resting},
        reachability::Claim,
    },
    target::Keda,
};

/// The message while the target runs and no pod is ready.
pub(super) const WAITING_FOR_PODS: &str = "resolvers hold requests until a pod is ready";

/// One step towards sleep: resolvers enter the path, are proved to be reached, and after a grace period the
/// target is scaled to zero.
pub(super) fn to_resolvers(draft: &mut Draft<'_>, replicas: i32) {
    let facts = draft.facts;
    draft.want_slices();
    draft.reconciling(
        "FallingAsleep",
        "resolvers take the place of its pods before those end",
    );
    let resting = resting(&facts.service.spec);
    let begun = draft.status.hand_off.clone();
    let Some(hand_off) = begun.filter(|begun| begun.towards == Towards::Resolvers) else {
        draft.status.hand_off = Some(begin(Towards::Resolvers, facts.now));
        draft.status.replicas_before = Some(replicas);
        draft.status.resting = Some(resting);
        return;
    };
    // Recorded before the target is scaled: nothing else would know it afterwards.
    let recorded = draft.status.replicas_before == Some(replicas)
        && draft.status.resting.as_ref() == Some(&resting);
    draft.status.replicas_before = Some(replicas);
    draft.status.resting = Some(resting);
    let Some(proved) = valid_proof(draft, &hand_off) else {
        if draft.has_slices() {
            prove(draft, &hand_off, true);
        }
        return;
    };
    if let Some(left) = facts.until(proved, facts.timeouts.grace) {
        draft.requeue_after(left);
    } else if recorded && draft.has_slices() {
        draft.scale = Some(ScaleWrite {
            replicas: 0,
            if_unchanged: true,
        });
        if matches!(facts.keda, Keda::Found { paused: false, .. }) {
            draft.pause_keda = Some(true);
        }
        draft.sleep();
    }
}

/// One step towards the pods: they are proved to be reached, resolvers leave the path, and it is proved once
/// more. Returns whether that is done.
pub(super) fn to_pods(draft: &mut Draft<'_>) -> bool {
    let facts = draft.facts;
    if facts.ready_pods == 0 {
        draft.status.hand_off = None;
        draft.want_slices();
        draft.reconciling("Waking", WAITING_FOR_PODS);
        return false;
    }
    if facts.is_headless() && facts.slices.is_empty() {
        // Only KubeElasti adds resolvers to a headless Service, and no watch of ours shows its slice.
        draft.status.hand_off = None;
        draft.delete_foreign_slice = true;
        return true;
    }
    draft.reconciling(
        "HandingOffToPods",
        "resolvers leave the path once the data plane reaches its pods",
    );
    let begun = draft.status.hand_off.clone();
    let Some(hand_off) = begun.filter(|begun| begun.towards == Towards::Pods) else {
        draft.status.hand_off = Some(begin(Towards::Pods, facts.now));
        draft.want_slices();
        return false;
    };
    let gone = facts.slices.is_empty();
    match hand_off.proved {
        // Without a resolver only pods can be reached.
        Some(_) if gone && facts.resolvers.is_empty() => draft.status.hand_off = None,
        Some(_) if gone => prove(draft, &hand_off, false),
        _ if valid_proof(draft, &hand_off).is_some() => {
            draft.slices = SliceChange::Remove;
            draft.set_mode(Mode::Serve);
        }
        _ => {
            draft.want_slices();
            if draft.has_slices() {
                prove(draft, &hand_off, true);
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

/// When it was proved, if the proof is still valid.
fn valid_proof(draft: &mut Draft<'_>, hand_off: &HandOff) -> Option<Timestamp> {
    let facts = draft.facts;
    let proved = hand_off.proved?;
    let old = facts.until(proved, facts.timeouts.proof_age).is_none();
    // Where a wait stands in for a proof, no resolver took part in it.
    let others = facts.unprovable().is_none() && hand_off.resolvers != addresses(facts);
    if let Some(hand_off) = draft.status.hand_off.as_mut().filter(|_| old || others) {
        hand_off.proved = None;
        hand_off.resolvers.clear();
        return None;
    }
    Some(proved)
}

fn addresses(facts: &Facts) -> Vec<String> {
    let resolvers = facts.resolvers.iter();
    resolvers.map(|it| it.address.to_string()).collect()
}

/// Uses the proof if there is one, and requests it if not. `beside_resolvers`: those are still in the path.
fn prove(draft: &mut Draft<'_>, hand_off: &HandOff, beside_resolvers: bool) {
    let facts = draft.facts;
    let claim = Claim {
        towards: hand_off.towards,
        since: hand_off.since,
        beside_resolvers,
        resolvers: facts.resolvers.iter().map(|it| it.address).collect(),
    };
    let begun = if beside_resolvers {
        Some(hand_off.since)
    } else {
        hand_off.proved
    };
    let proved = if facts.unprovable().is_some() {
        let begun = begun.unwrap_or(hand_off.since);
        let left = facts.until(begun, facts.timeouts.unprovable);
        draft.requeue_after_opt(left);
        left.is_none()
    } else {
        let proof = facts.proof.as_ref();
        proof.is_some_and(|proof| proof.holds && proof.claim == claim)
    };
    if proved && beside_resolvers {
        draft.status.hand_off = Some(HandOff {
            proved: Some(facts.now),
            resolvers: addresses(facts),
            ..hand_off.clone()
        });
        draft.requeue_after(Duration::ZERO);
    } else if proved {
        draft.status.hand_off = None;
    } else if facts.unprovable().is_none() && !facts.resolvers.is_empty() {
        draft.inquiry = Some(Inquiry::Proof(claim));
    }
}
