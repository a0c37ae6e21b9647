//! Whether the release is rejected.

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
        Ruling::CreationFailed => (True, reasons::CREATION_JOB_FAILED),
        Ruling::AwaitsCreation
        | Ruling::AwaitsMirror
        | Ruling::NoBlockingJobs { .. }
        | Ruling::ByJobs(JobState::Unknown | JobState::Unset) => (Unknown, reasons::REJECTED),
        Ruling::ByUser(Override::Rejected) => (True, reasons::MANUALLY_REJECTED),
        Ruling::ByUser(Override::Accepted) => (False, reasons::MANUALLY_ACCEPTED),
        Ruling::ByJobs(JobState::Failure) => (True, reasons::REJECTED),
        Ruling::ByJobs(JobState::Pending | JobState::Success) => (False, reasons::REJECTED),
    };
    ConditionUpdate::new(
        conditions::REJECTED,
        status,
        reason,
        facts.explanation(ruling),
    )
}
