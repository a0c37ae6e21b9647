//! The result of a job from those of its runs, and of several jobs together.

use std::collections::BTreeMap;

use crate::api::{JobRunState, JobState, JobStatus, ReleasePayloadStatus};

/// The share of analysed runs that has to pass, in percent.
const ANALYSIS_THRESHOLD_PERCENT: usize = 60;

pub(super) fn decide(status: &mut ReleasePayloadStatus, extra_attempts: &BTreeMap<String, i32>) {
    for job in status
        .blocking_job_results
        .iter_mut()
        .chain(&mut status.informing_job_results)
        .chain(&mut status.upgrade_job_results)
    {
        let extra = extra_attempts.get(&job.name).copied().unwrap_or(0);
        job.state = job_state(job, extra);
    }
}

/// The result of a job that users let run `extra_attempts` more times than configured.
pub fn job_state(job: &JobStatus, extra_attempts: i32) -> JobState {
    use JobState::{Failure, Pending, Success, Unknown};
    let count = |matches: fn(JobRunState) -> bool| {
        job.results
            .iter()
            .filter(|result| matches(result.state))
            .count()
    };
    let total = job.results.len();
    let passed = count(|state| state == JobRunState::Success);
    let running = count(JobRunState::is_running);
    let failed = count(JobRunState::has_failed);
    if total == 0 {
        return Unknown;
    }
    if let Ok(wanted @ 1..) = usize::try_from(job.analysis_job_count) {
        return if total < wanted {
            Unknown
        } else if passed * 100 >= wanted * ANALYSIS_THRESHOLD_PERCENT {
            Success
        } else if running > 0 {
            Pending
        } else {
            Failure
        };
    }
    let retries = job.max_retries.max(0).saturating_add(extra_attempts.max(0));
    let attempts = usize::try_from(retries).unwrap_or(0).saturating_add(1);
    if passed > 0 {
        Success
    } else if running > 0 || (failed > 0 && total < attempts) {
        Pending
    } else if failed > 0 {
        Failure
    } else {
        Unknown
    }
}

/// The result of several jobs together. A pending one wins over a failed one: the verdict waits.
pub fn aggregate(states: impl IntoIterator<Item = JobState>) -> JobState {
    let states: Vec<_> = states.into_iter().collect();
    let any = |wanted: JobState| states.contains(&wanted);
    if any(JobState::Pending) {
        JobState::Pending
    } else if states.is_empty() || any(JobState::Unknown) || any(JobState::Unset) {
        JobState::Unknown
    } else if any(JobState::Failure) {
        JobState::Failure
    } else {
        JobState::Success
    }
}
