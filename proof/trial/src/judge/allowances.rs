//! The permitted differences from a run without faults, with their reasons. No other difference is
//! permitted.

use serde::Serialize;

use super::FENCE;

/// A permitted difference.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Allowance {
    pub what: &'static str,
    /// Why it is not a defect.
    pub why: &'static str,
}

/// On Endpoints and EndpointSlices: the time of the change that they were last written for.
pub(crate) const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Kinds that are judged by rules of their own.
pub(crate) const LEASES: &str = "coordination.k8s.io/leases";
pub(crate) const EVENTS: &str = "/events";
pub(crate) const NOT_COMPARED: [&str; 2] = [LEASES, EVENTS];

/// The prefix of the comparison keys of Endpoints.
pub(crate) const ENDPOINTS: &str = "/endpoints/";

pub const ALLOWANCES: [Allowance; 10] = [
    Allowance {
        what: "the order of managedFields and of status.conditions",
        why: "it only reflects which entry came first; both are sets by their keys",
    },
    Allowance {
        what: "metadata.generation",
        why: "the number of steps of a rollout depends on when its pods become ready; that it is at most the number of writes is checked, and the distance to status.observedGeneration is compared",
    },
    Allowance {
        what: TRIGGER,
        why: "a restarted controller does not know which changes it has recorded, and records the last one again",
    },
    Allowance {
        what: "status.steps[].attempts of Operations, and which of them failed or were interrupted",
        why: "faults change the number of attempts, and with it the messages; the result of each step is compared",
    },
    Allowance {
        what: FENCE,
        why: "faults change which leader wrote an object; that the term never decreases is checked",
    },
    Allowance {
        what: "the version in a reference to an object",
        why: "it is that of the last write before, and every fault adds writes",
    },
    Allowance {
        what: "Endpoints that were kept where other runs delete and create them again",
        why: "they have the name of their Service and no owner: a controller that missed the deletion and re-creation of the Service may keep them",
    },
    Allowance {
        what: "Events and Leases",
        why: "they record what happened and who leads, which faults change; their content is searched for secrets, and the writes of a leader are checked for their fence",
    },
    Allowance {
        what: "after a walk or from a start state, what is kept as history",
        why: "revisions, ReplicaSets without pods, pauses that are over, and field managers describe the path, and two paths to one declaration differ",
    },
    Allowance {
        what: "fields that a workload names with `Workload::differs`",
        why: "they are hashes of uids, times slept, or counts of the writes of another object; that there is a value is compared, and each has its reason in the workload",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_track_record_has_each_of_them() {
        let record = include_str!("../../../campaign/TRACK_RECORD.md");
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
