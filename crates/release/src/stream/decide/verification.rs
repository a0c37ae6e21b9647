//! Launches the verification jobs of a release, and again after failures.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::{
    Draft, StreamChange,
    environment::Images,
    payload::verifications,
    run::{Request, RunKind, prow_job},
    upgrade_source::{UpgradeSource, upgrade_source},
};
use crate::{
    api::{JobRunState, JobStatus, ReleasePayload},
    config::ReleaseVerification,
    names,
    payload::{Phase, facts::extra_attempts},
    stream::facts::{Release, public_repository},
};

/// The longest wait before a retry.
const MAX_BACKOFF_MINUTES: u64 = 15;

/// The wait before the retry after `retries` others: none, 2, 4, 8 and then 15 minutes.
pub fn backoff(retries: u32) -> Duration {
    let minutes = match retries {
        0 => 0,
        1..=3 => 1 << retries,
        _ => MAX_BACKOFF_MINUTES,
    };
    Duration::from_mins(minutes)
}

/// What to do about a verification job.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Next {
    /// Nothing: it passed, it runs, or no attempt is left.
    Nothing,
    /// Launch this attempt.
    Launch(u32),
    /// Launch it later.
    Wait(Timestamp),
}

/// Launches what is due for a release whose image exists.
pub(super) fn decide(draft: &mut Draft<'_>, release: &Release<'_>) {
    let facts = draft.facts;
    let Some(payload) = release.payload else {
        return;
    };
    let tag = release.name();
    let all = match verifications(facts, draft.config, tag) {
        Ok(all) => all,
        Err(problem) => {
            return draft.problem("UnableToVerifyRelease", format!("{tag}: {problem}"));
        }
    };
    for (key, one) in &all {
        let Some(job) = one.prow_job.as_ref().filter(|_| !one.disabled) else {
            continue;
        };
        let launched = match &one.aggregated_prow_job {
            None => {
                let launch = Launch::new(release, payload, key, one, &job.name);
                launch.verification(draft)
            }
            Some(aggregated) => {
                let launch = Launch::new(release, payload, key, one, &job.name);
                let count = u32::try_from(aggregated.analysis_job_count).unwrap_or(0);
                launch.aggregated(draft, aggregated.aggregator(), count)
            }
        };
        if let Err(problem) = launched {
            draft.problem("ProwJobInvalid", format!("{tag}: {key}: {problem}"));
        }
    }
    if release.phase == Some(Phase::Ready) {
        tell_removed_jobs(draft, tag, payload, &all);
    }
}

/// Says which jobs the verdict waits for although no run of them will be launched: the payload has them since the
/// release was cut, and the configuration of the stream has lost them since.
fn tell_removed_jobs(
    draft: &mut Draft<'_>,
    tag: &str,
    payload: &ReleasePayload,
    all: &BTreeMap<String, ReleaseVerification>,
) {
    let Some(status) = &payload.status else {
        return;
    };
    let extra = extra_attempts(payload);
    let lists = [
        ("blocking", &status.blocking_job_results),
        ("informing", &status.informing_job_results),
    ];
    for (list, jobs) in lists {
        for job in jobs {
            let extra = extra.get(&job.name).copied().unwrap_or(0);
            if launches(all, job) || !awaits_a_launch(job, extra, draft.facts.now) {
                continue;
            }
            let JobStatus { name, job_name, .. } = job;
            let message = format!(
                "{tag}: {list} job {name} ({job_name}) is not launched: the configuration of the stream has it no \
                 longer; put verify.{name} back, or decide with neap release accept or reject"
            );
            draft.problem("VerificationJobRemoved", message);
        }
    }
}

/// Whether the configuration launches the runs of this job of a payload.
fn launches(all: &BTreeMap<String, ReleaseVerification>, job: &JobStatus) -> bool {
    let Some(one) = all.get(&job.name).filter(|one| !one.disabled) else {
        return false;
    };
    let launches_runs = one
        .prow_job
        .as_ref()
        .is_some_and(|it| it.name == job.job_name);
    let aggregated = one.aggregated_prow_job.as_ref();
    launches_runs
        || aggregated
            .is_some_and(|it| names::aggregator_job(&job.name, it.aggregator()) == job.job_name)
}

/// Whether a run of this job is to be launched, now or later.
fn awaits_a_launch(job: &JobStatus, extra_attempts: i32, now: Timestamp) -> bool {
    match usize::try_from(job.analysis_job_count) {
        Ok(count @ 1..) => job.results.len() < count,
        _ => next(job, extra_attempts, now) != Next::Nothing,
    }
}

struct Launch<'a> {
    release: &'a Release<'a>,
    payload: &'a ReleasePayload,
    key: &'a str,
    config: &'a ReleaseVerification,
    periodic: &'a str,
}

impl<'a> Launch<'a> {
    fn new(
        release: &'a Release<'a>,
        payload: &'a ReleasePayload,
        key: &'a str,
        config: &'a ReleaseVerification,
        periodic: &'a str,
    ) -> Self {
        Self {
            release,
            payload,
            key,
            config,
            periodic,
        }
    }

    /// The job of the payload's status with this Prow job.
    fn recorded(&self, job: &str) -> Option<&JobStatus> {
        let status = self.payload.status.as_ref()?;
        let mut all = status
            .blocking_job_results
            .iter()
            .chain(&status.informing_job_results);
        all.find(|it| it.name == self.key && it.job_name == job)
    }

    fn verification(&self, draft: &mut Draft<'_>) -> Result<(), String> {
        let Some(recorded) = self.recorded(self.periodic) else {
            // The payload was made from another configuration; its jobs are those of then.
            return Ok(());
        };
        self.launch_next(draft, recorded, |attempt| {
            let name = names::verification_run(self.release.name(), self.key, attempt);
            (name, RunKind::Verification, self.periodic.to_owned(), None)
        })
    }

    fn aggregated(
        &self,
        draft: &mut Draft<'_>,
        aggregator: &str,
        count: u32,
    ) -> Result<(), String> {
        let tag = self.release.name();
        let analysed = self.recorded(self.periodic);
        if let Some(analysed) = analysed {
            for number in 0..count {
                let name = names::analysis_run(tag, self.key, number);
                let is_recorded = analysed
                    .results
                    .iter()
                    .any(|it| it.coordinates.name == name);
                if !is_recorded {
                    self.launch(draft, name, RunKind::Analysis, self.periodic, None)?;
                }
            }
        }
        let job = names::aggregator_job(self.key, aggregator);
        let Some(recorded) = self.recorded(&job) else {
            return Ok(());
        };
        self.launch_next(draft, recorded, |attempt| {
            let name = names::aggregator_run(tag, self.key, attempt);
            (
                name,
                RunKind::Aggregator,
                aggregator.to_owned(),
                Some(job.clone()),
            )
        })
    }

    fn launch_next(
        &self,
        draft: &mut Draft<'_>,
        recorded: &JobStatus,
        run: impl Fn(u32) -> (String, RunKind, String, Option<String>),
    ) -> Result<(), String> {
        let extra = extra_attempts(self.payload)
            .get(self.key)
            .copied()
            .unwrap_or(0);
        match next(recorded, extra, draft.facts.now) {
            Next::Nothing => Ok(()),
            Next::Wait(moment) => {
                draft.look_again_at(moment);
                Ok(())
            }
            Next::Launch(attempt) => {
                let (name, kind, periodic, job) = run(attempt);
                self.launch(draft, name, kind, &periodic, job)
            }
        }
    }

    fn launch(
        &self,
        draft: &mut Draft<'_>,
        name: String,
        kind: RunKind,
        periodic: &str,
        job: Option<String>,
    ) -> Result<(), String> {
        let facts = draft.facts;
        let tag = self.release.name();
        let is_there = facts.runs.get(tag).is_some_and(|runs| runs.contains(&name));
        if is_there || facts.taken.contains_key(&name) {
            return Ok(());
        }
        let source = self.upgrade_source(draft)?;
        let latest = facts.pull_spec(draft.config, self.release.tag);
        let latest = latest.ok_or("the release has no public repository")?;
        let mirror = facts.mirrors.get(&facts.mirror_name(draft.config, tag));
        let images = Images {
            latest,
            initial: source.as_ref().map(|it| it.pull_spec.clone()),
            is_upgrade: self.config.upgrade,
            mirror_repository: mirror.and_then(|it| public_repository(it, &facts.options)),
            is_reference: self.release.tag.reference,
            architecture: facts.options.architecture,
            analysis: self.analysis(kind, facts.now),
        };
        let request = Request {
            name,
            kind,
            key: self.key,
            periodic,
            job,
            tag,
            payload_uid: self.payload.metadata.uid.as_deref(),
            from_tag: source.map(|it| it.tag),
            images,
        };
        let run = prow_job(facts, &request).map_err(|problem| problem.to_string())?;
        draft.create_run(run);
        Ok(())
    }

    fn upgrade_source(&self, draft: &Draft<'_>) -> Result<Option<UpgradeSource>, String> {
        if !self.config.upgrade {
            return Ok(None);
        }
        let default = if draft.config.is_stable() {
            "PreviousPatch"
        } else {
            "Previous"
        };
        let from = &self.config.upgrade_from;
        let from_release = self.config.upgrade_from_release.as_ref();
        let tag = self.release.name();
        upgrade_source(draft.facts, draft.config, tag, from, from_release, default)
            .map(Some)
            .map_err(|problem| format!("there is no release to upgrade from: {problem}"))
    }

    fn analysis(&self, kind: RunKind, now: Timestamp) -> Vec<(&'static str, String)> {
        if kind != RunKind::Aggregator && !self.config.multi_job_analysis {
            return Vec::new();
        }
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        vec![
            ("PAYLOAD_TAG", self.release.name().to_owned()),
            ("VERIFICATION_JOB_NAME", self.periodic.to_owned()),
            ("JOB_START_TIME", now.to_string()),
        ]
    }
}

impl Draft<'_> {
    /// Launches a ProwJob, unless this look at the stream has launched enough.
    pub(super) fn create_run(&mut self, run: crate::api::ProwJob) {
        if self.launches >= self.facts.options.max_launches {
            let soon = self.facts.now.checked_add(SignedDuration::from_secs(1));
            return self.look_again_at(soon.unwrap_or(self.facts.now));
        }
        self.launches += 1;
        self.changes.push(StreamChange::CreateRun(Box::new(run)));
    }
}

/// What is next for a job with these results.
fn next(job: &JobStatus, extra_attempts: i32, now: Timestamp) -> Next {
    let results = &job.results;
    if results.is_empty() {
        return Next::Launch(0);
    }
    let is_over = results
        .iter()
        .any(|it| it.state == JobRunState::Success || it.state.is_running());
    let attempts = u32::try_from(results.len()).unwrap_or(u32::MAX);
    let retries = job.max_retries.max(0).saturating_add(extra_attempts.max(0));
    if is_over || attempts > retries.unsigned_abs() {
        return Next::Nothing;
    }
    // A run whose state is not known yet may still be running.
    let is_unsure =
        |it: &crate::api::JobRunResult| !it.state.has_ended() && it.missing_since.is_none();
    if results.iter().any(is_unsure) {
        return Next::Nothing;
    }
    let ended = results
        .iter()
        .filter_map(|it| it.completion_time.as_ref().or(it.missing_since.as_ref()));
    // An end in the future is that of another clock, and no reason to wait for it.
    let last = ended.map(|time| time.0).max().filter(|last| *last <= now);
    let wait = SignedDuration::try_from(backoff(attempts - 1)).unwrap_or(SignedDuration::ZERO);
    let due = last
        .and_then(|last| last.checked_add(wait).ok())
        .unwrap_or(now);
    if due > now {
        Next::Wait(due)
    } else {
        Next::Launch(attempts)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::payload::samples::{job_status, now};

    #[test]
    fn retries_wait_longer_each_time() {
        let minutes: Vec<_> = (0..7).map(|it| backoff(it).as_secs() / 60).collect();
        assert_eq!(minutes, [0, 2, 4, 8, 15, 15, 15]);
    }

    #[test]
    fn a_job_is_run_again_while_retries_remain() {
        use JobRunState::{Failure, Pending, Success, Unknown};
        let later = |minutes: i64| {
            now()
                .checked_add(SignedDuration::from_mins(minutes))
                .unwrap()
        };
        for (retries, extra, results, wanted) in [
            (0, 0, &[][..], Next::Launch(0)),
            (0, 0, &[Failure], Next::Nothing),
            (0, 1, &[Failure], Next::Launch(1)),
            (3, 0, &[Failure], Next::Launch(1)),
            (3, 0, &[Failure, Failure], Next::Wait(later(2))),
            (3, 0, &[Failure, Failure, Failure], Next::Wait(later(4))),
            (3, 0, &[Failure, Failure, Failure, Failure], Next::Nothing),
            (3, 0, &[Failure, Success], Next::Nothing),
            (3, 0, &[Failure, Pending], Next::Nothing),
            (3, 0, &[Unknown], Next::Nothing),
        ] {
            let mut job = job_status(results);
            job.max_retries = retries;
            for result in &mut job.results {
                if result.state.has_ended() {
                    result.completion_time = Some(Time(now()));
                }
            }
            assert_eq!(
                next(&job, extra, now()),
                wanted,
                "{retries} {extra} {results:?}"
            );
        }
        let mut ahead = job_status(&[Failure, Failure]);
        ahead.max_retries = 2;
        ahead.results[1].completion_time = Some(Time(later(600)));
        assert_eq!(
            next(&ahead, 0, now()),
            Next::Launch(2),
            "Prow's clock is ahead"
        );
        let mut vanished = job_status(&[Unknown]);
        vanished.max_retries = 1;
        vanished.results[0].missing_since = Some(Time(now()));
        assert_eq!(next(&vanished, 0, now()), Next::Launch(1));
    }
}
