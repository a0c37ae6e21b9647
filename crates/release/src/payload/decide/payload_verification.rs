//! Which jobs verify the payload: the lists of the spec, copied into the status once.

use super::Draft;
use crate::api::{CIConfiguration, JobStatus};

pub(super) fn decide(draft: &mut Draft<'_>) {
    let status = &draft.status;
    let has_jobs = !status.blocking_job_results.is_empty()
        || !status.informing_job_results.is_empty()
        || !status.upgrade_job_results.is_empty();
    if has_jobs {
        return;
    }
    let config = &draft.facts.payload.spec.payload_verification_config;
    let verified = |one: &CIConfiguration| JobStatus {
        max_retries: one.max_retries,
        analysis_job_count: one.analysis_job_count,
        ..upgraded(one)
    };
    draft.status.blocking_job_results = config.blocking_jobs.iter().map(verified).collect();
    draft.status.informing_job_results = config.informing_jobs.iter().map(verified).collect();
    draft.status.upgrade_job_results = config.upgrade_jobs.iter().map(upgraded).collect();
}

fn upgraded(one: &CIConfiguration) -> JobStatus {
    JobStatus {
        name: one.name.clone(),
        job_name: one.job_name.clone(),
        ..JobStatus::default()
    }
}
