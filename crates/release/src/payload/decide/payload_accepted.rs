//! Whether the release is accepted.

use neap_kit::status::{ConditionStatus, ConditionUpdate};

use super::verdict::{Ruling, VerdictFacts};
use crate::api::{
    JobState, Override,
    conditions::{self, reasons},
};

/// The condition that these facts mean.
pub fn decide(facts: &VerdictFacts) -> ConditionUpdate {
    use ConditionStatus::{False, True, Unknown};
    let ruling = facts.ruling();
    let (status, reason) = match ruling {
        Ruling::CreationFailed => (False, reasons::CREATION_JOB_FAILED),
        Ruling::ByUser(Override::Accepted) => (True, reasons::MANUALLY_ACCEPTED),
        Ruling::ByUser(Override::Rejected) => (False, reasons::MANUALLY_REJECTED),
        Ruling::NoBlockingJobs { others_ended: true } | Ruling::ByJobs(JobState::Success) => {
            (True, reasons::ACCEPTED)
        }
        Ruling::AwaitsCreation
        | Ruling::AwaitsMirror
        | Ruling::NoBlockingJobs {
            others_ended: false,
        }
        | Ruling::ByJobs(JobState::Unknown | JobState::Unset) => (Unknown, reasons::ACCEPTED),
        Ruling::ByJobs(JobState::Pending | JobState::Failure) => (False, reasons::ACCEPTED),
    };
    ConditionUpdate::new(
        conditions::ACCEPTED,
        status,
        reason,
        facts.explanation(ruling),
    )
}
