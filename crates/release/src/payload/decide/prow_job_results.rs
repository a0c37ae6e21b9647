//! The results of runs, recorded in the jobs that they belong to.
//!
//! A result is added or updated and never removed. The result of a run that has ended stays, whatever
//! becomes of its ProwJob. A run whose ProwJob is gone before it ended is unknown after a grace period.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Draft;
use crate::{
    api::{
        JobRunCoordinates, JobRunResult, JobRunState, JobStatus, ProwJobState,
        ReleasePayloadStatus, UpgradeType, VerificationDataSource, annotations,
    },
    names::{RunName, short_hash},
    payload::facts::RunFacts,
    version,
};

pub(super) fn decide(draft: &mut Draft<'_>) {
    let facts = draft.facts;
    if facts.unproved.is_some() {
        // A run that cannot be proved is not gone.
        return;
    }
    let source = facts
        .payload
        .spec
        .payload_verification_config
        .payload_verification_data_source;
    if source != Some(VerificationDataSource::BuildFarmLookup) {
        return;
    }
    let prow = &facts.payload.spec.payload_creation_config.prow_coordinates;
    if prow.namespace.is_empty() {
        draft
            .warnings
            .push("the payload does not say where its ProwJobs are".to_owned());
        return;
    }
    let tag = facts.payload.metadata.name.clone().unwrap_or_default();
    let is_ours = facts.payload.metadata.annotations.as_ref();
    let is_ours = is_ours.is_some_and(|all| all.contains_key(annotations::RUN_KEY));
    for run in &facts.runs {
        if run.namespace != prow.namespace || run.state == ProwJobState::Scheduling {
            continue;
        }
        match place(&mut draft.status, &tag, run) {
            Ok((job, upgrade_type)) => record(job, run, upgrade_type, is_ours),
            Err(warning) => draft.warnings.push(warning),
        }
    }
    note_vanished(draft);
}

/// The job that a run belongs to, and the kind of upgrade that it tests.
fn place<'a>(
    status: &'a mut ReleasePayloadStatus,
    tag: &str,
    run: &RunFacts,
) -> Result<(&'a mut JobStatus, UpgradeType), String> {
    let Some(prow_job) = &run.job else {
        return Err(format!("ProwJob {} does not name its job", run.name));
    };
    let (key, from) = if let Some(key) = &run.key {
        (key.clone(), run.from_tag.clone())
    } else {
        let name = RunName::parse(&run.name).map_err(|error| error.to_string())?;
        (name.job, name.upgrade_from)
    };
    let is_exact = run.key.is_some();
    let matches = |job: &JobStatus| {
        job.job_name == *prow_job
            && (job.name == key
                || (!is_exact
                    && (run
                        .name
                        .contains(&short_hash(&format!("{tag}-{}", job.name)))
                        || key == format!("{}-aggregator", job.name)
                        || key == format!("{}-analysis", job.name))))
    };
    let upgrades = &mut status.upgrade_job_results;
    let verified = status
        .blocking_job_results
        .iter_mut()
        .chain(&mut status.informing_job_results);
    let verified = verified.map(|job| (job, false));
    let mut all = verified.chain(upgrades.iter_mut().map(|job| (job, true)));
    let found = all.find(|(job, _)| matches(job));
    let (job, is_upgrade) = found
        .ok_or_else(|| format!("unable to locate job results for {} ({prow_job})", run.name))?;
    // The kind of upgrade follows from the name in the original, which has it for upgrade jobs only.
    let from = from.filter(|_| is_upgrade || !is_exact);
    Ok((
        job,
        from.map_or(UpgradeType::None, |from| upgrade_type(&from, tag)),
    ))
}

fn upgrade_type(from: &str, to: &str) -> UpgradeType {
    match (version::parse(from), version::parse(to)) {
        (Some(from), Some(to)) if from.major != to.major => UpgradeType::None,
        (Some(from), Some(to)) if to.minor > from.minor => UpgradeType::UpgradeMinor,
        (Some(_), Some(_)) => UpgradeType::Upgrade,
        _ => UpgradeType::None,
    }
}

fn record(job: &mut JobStatus, run: &RunFacts, upgrade_type: UpgradeType, is_ours: bool) {
    let state = run_state(run, is_ours);
    let known = job.results.iter_mut().find(|result| {
        let at = &result.coordinates;
        at.name == run.name && at.namespace == run.namespace
    });
    match known {
        // It has ended, or another ProwJob took its name.
        Some(result) if result.state.has_ended() => {}
        Some(result) if !result.uid.is_empty() && result.uid != run.uid => {}
        Some(result) => {
            result.start_time.clone_from(&run.start_time);
            result.completion_time.clone_from(&run.completion_time);
            result.state = state;
            result.url.clone_from(&run.url);
            result.uid.clone_from(&run.uid);
            result.missing_since = None;
        }
        None => job.results.push(JobRunResult {
            coordinates: JobRunCoordinates {
                name: run.name.clone(),
                namespace: run.namespace.clone(),
                cluster: run.cluster.clone(),
            },
            start_time: run.start_time.clone(),
            completion_time: run.completion_time.clone(),
            state,
            url: run.url.clone(),
            upgrade_type,
            uid: run.uid.clone(),
            missing_since: None,
        }),
    }
}

/// The state of a run. For runs of this controller, an end without the time of the end is no end.
fn run_state(run: &RunFacts, is_ours: bool) -> JobRunState {
    let state = match run.state {
        ProwJobState::Scheduling => JobRunState::Scheduling,
        ProwJobState::Triggered => JobRunState::Triggered,
        ProwJobState::Pending => JobRunState::Pending,
        ProwJobState::Success => JobRunState::Success,
        ProwJobState::Failure => JobRunState::Failure,
        ProwJobState::Aborted => JobRunState::Aborted,
        ProwJobState::Error => JobRunState::Error,
        ProwJobState::Unset | ProwJobState::Unknown => JobRunState::Unknown,
    };
    if is_ours && state.has_ended() && run.completion_time.is_none() {
        JobRunState::Pending
    } else {
        state
    }
}

/// Notes the runs whose ProwJobs are gone, and gives up on them after the grace period.
fn note_vanished(draft: &mut Draft<'_>) {
    let facts = draft.facts;
    let grace = SignedDuration::try_from(facts.timeouts.vanished_run_grace);
    let grace = grace.unwrap_or(SignedDuration::MAX);
    let is_there = |result: &JobRunResult| {
        facts.runs.iter().any(|run| {
            run.name == result.coordinates.name && (result.uid.is_empty() || run.uid == result.uid)
        })
    };
    let status = &mut draft.status;
    let mut next = None;
    for result in status
        .blocking_job_results
        .iter_mut()
        .chain(&mut status.informing_job_results)
        .chain(&mut status.upgrade_job_results)
        .flat_map(|job| &mut job.results)
    {
        if result.state.has_ended() || is_there(result) {
            continue;
        }
        let now = Time(jiff::Timestamp::from_second(facts.now.as_second()).unwrap_or(facts.now));
        // A clock that has jumped back begins the grace anew: it must not last until the clock has caught up.
        let known = result
            .missing_since
            .take()
            .filter(|since| since.0 <= facts.now);
        let since = result.missing_since.insert(known.unwrap_or(now));
        if facts.now.duration_since(since.0) >= grace {
            result.state = JobRunState::Unknown;
        } else {
            let moment = since.0.checked_add(grace).unwrap_or(facts.now);
            next = Some(next.map_or(moment, |earlier: jiff::Timestamp| earlier.min(moment)));
        }
    }
    if let Some(moment) = next {
        draft.look_again_at(moment);
    }
}
