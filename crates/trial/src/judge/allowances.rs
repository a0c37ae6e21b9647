//! What may be otherwise than in a run without faults, and why. Nothing else may.

use serde::Serialize;

use super::FENCE;

/// A difference that is no mistake.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Allowance {
    /// What may differ.
    pub what: &'static str,
    /// Why nobody is to blame for it.
    pub why: &'static str,
}

/// On endpoints: when happened what they were last written for.
pub(crate) const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Kinds that are judged by rules of their own.
pub(crate) const LEASES: &str = "coordination.k8s.io/leases";
pub(crate) const EVENTS: &str = "/events";
pub(crate) const NOT_COMPARED: [&str; 2] = [LEASES, EVENTS];

/// How the places of Endpoints begin.
pub(crate) const ENDPOINTS: &str = "/endpoints/";

/// All of them.
pub const ALLOWANCES: [Allowance; 10] = [
    Allowance {
        what: "the order of managedFields and of status.conditions",
        why: "it tells what came first; both are sets by their keys",
    },
    Allowance {
        what: "metadata.generation",
        why: "how many steps a roll-out takes depends on how its pods come up; that it is at most the number of writes is asked, and how far status.observedGeneration is behind it is compared",
    },
    Allowance {
        what: TRIGGER,
        why: "a controller that was started anew does not know what it has told of, and tells it again",
    },
    Allowance {
        what: "status.steps[].attempts of Operations",
        why: "how often a step was tried is what faults change, and so is the number in its messages; how each step ended is compared",
    },
    Allowance {
        what: FENCE,
        why: "who led when it was written is what faults change; that it never goes back is asked",
    },
    Allowance {
        what: "the version in a reference to an object",
        why: "it is that of whatever write came before, and every fault adds writes",
    },
    Allowance {
        what: "Endpoints that were kept where others delete and make them again",
        why: "they bear the name of their Service and have no owner: whoever did not see that it was deleted and made again does well to keep them",
    },
    Allowance {
        what: "Events and Leases",
        why: "they tell what happened and who leads, which faults change; what they show is looked through for secrets, and what a leader writes for its fence",
    },
    Allowance {
        what: "after a walk or from a start state, what is kept as history",
        why: "revisions, ReplicaSets without pods, pauses that are over, and who wrote which field tell of the way, and two ways to one declaration differ",
    },
    Allowance {
        what: "status.savedReplicaSeconds of ElastiServices",
        why: "how long a service slept is what faults change; that it was counted is compared",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_track_record_has_each_of_them() {
        let record = include_str!("../../../faults/TRACK_RECORD.md");
        let (_, list) = record
            .split_once("## What is allowed to differ, and why")
            .expect("a chapter of them");
        let flat = list.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut from = 0;
        for (number, allowance) in (1..).zip(ALLOWANCES) {
            let item = format!("{number}. {}: {}.", allowance.what, allowance.why);
            let at = flat[from..].find(&item);
            from += at.unwrap_or_else(|| panic!("missing, or out of its turn: {item}"));
        }
        let beyond = format!("{}. ", ALLOWANCES.len() + 1);
        assert!(
            !flat[from..].contains(&beyond),
            "one that is not in the list"
        );
    }
}
