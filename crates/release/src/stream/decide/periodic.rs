//! Jobs that run at certain times on the newest accepted release.

use chrono::{DateTime, Utc};
use jiff::{SignedDuration, Timestamp};

use super::{
    Actions, Draft,
    environment::Images,
    run::{Request, RunKind, prow_job},
    upgrade_source::{UpgradeSource, upgrade_source},
};
use crate::{
    config::{ReleaseConfig, ReleasePeriodic, Schedule},
    names,
    stream::facts::{Facts, PeriodicRun, Release, public_repository},
};

pub(super) fn decide(draft: &mut Draft<'_>, actions: &Actions<'_>) {
    if draft.config.periodic.is_empty() {
        return;
    }
    let newest = if draft.config.is_stable() {
        actions
            .accepted_by_version()
            .first()
            .map(|it| (*it).clone())
    } else {
        actions.accepted.first().cloned()
    };
    for (key, periodic) in &draft.config.periodic {
        if let Err(problem) = one(draft, key, periodic, newest.as_ref()) {
            draft.problem("ProwJobInvalid", format!("periodic {key}: {problem}"));
        }
    }
}

fn one(
    draft: &mut Draft<'_>,
    key: &str,
    periodic: &ReleasePeriodic,
    newest: Option<&Release<'_>>,
) -> Result<(), String> {
    let facts = draft.facts;
    let Some(job) = &periodic.prow_job else {
        return Ok(());
    };
    let last = facts.periodic_runs.get(&job.name);
    if last.is_some_and(|last| !last.ended) {
        return Ok(());
    }
    let since = facts
        .source
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|time| time.0);
    let due = match due(key, periodic, last, since.unwrap_or(facts.now)) {
        Ok(Some(due)) => due,
        Ok(None) => return Ok(()),
        Err((path, why)) => {
            draft.problem("InvalidReleaseDefinition", format!("{path}: {why}"));
            return Ok(());
        }
    };
    if due > facts.now {
        draft.look_again_at(due);
        return Ok(());
    }
    let Some(release) = newest else {
        draft.problems.push(format!(
            "periodic {key}: there is no accepted release to run it on"
        ));
        return Ok(());
    };
    let tag = release.name();
    let source = source_of(facts, draft.config, periodic, tag)?;
    let latest = facts.pull_spec(draft.config, release.tag);
    let mirror = facts.mirrors.get(&facts.mirror_name(draft.config, tag));
    let request = Request {
        name: names::run_name(&format!("{}-{key}", draft.config.name), &slot(last, due)),
        kind: RunKind::Periodic,
        key,
        periodic: &job.name,
        job: None,
        tag,
        payload_uid: None,
        from_tag: source.as_ref().map(|it| it.tag.clone()),
        images: Images {
            latest: latest.ok_or("the release has no public repository")?,
            initial: source.map(|it| it.pull_spec),
            is_upgrade: periodic.upgrade,
            mirror_repository: mirror.and_then(|it| public_repository(it, &facts.options)),
            is_reference: release.tag.reference,
            architecture: facts.options.architecture,
            analysis: Vec::new(),
        },
    };
    let run = prow_job(facts, &request).map_err(|problem| problem.to_string())?;
    draft.create_run(run);
    Ok(())
}

/// The release that a run on `tag` upgrades from, if it upgrades.
fn source_of(
    facts: &Facts,
    config: &ReleaseConfig,
    periodic: &ReleasePeriodic,
    tag: &str,
) -> Result<Option<UpgradeSource>, String> {
    if !periodic.upgrade {
        return Ok(None);
    }
    let default = if config.is_stable() {
        "PreviousPatch"
    } else {
        "PreviousMinus1"
    };
    let from_release = periodic.upgrade_from_release.as_ref();
    let from = &periodic.upgrade_from;
    upgrade_source(facts, config, tag, from, from_release, default)
        .map(Some)
        .map_err(|why| why.to_string())
}

/// The end of the name of a run: the moment at which it was due, so that it is launched once.
fn slot(last: Option<&PeriodicRun>, due: Timestamp) -> String {
    last.map_or_else(|| "first".to_owned(), |_| due.as_second().to_string())
}

/// When a periodic runs next. None if never; an error is the path of a field and what is wrong with it.
fn due(
    key: &str,
    periodic: &ReleasePeriodic,
    last: Option<&PeriodicRun>,
    since: Timestamp,
) -> Result<Option<Timestamp>, (String, String)> {
    let schedule = periodic
        .schedule()
        .map_err(|(field, why)| (format!("periodic.{key}{field}"), why))?;
    let cron = match schedule {
        Schedule::Every(interval) => {
            let interval = SignedDuration::try_from(interval).unwrap_or(SignedDuration::MAX);
            return Ok(Some(last.map_or(since, |last| {
                last.created.checked_add(interval).unwrap_or(Timestamp::MAX)
            })));
        }
        Schedule::At(cron) => cron,
    };
    let after = last.map_or(since, |last| last.created);
    let after: Option<DateTime<Utc>> = DateTime::from_timestamp(after.as_second(), 0);
    let next = after.and_then(|after| cron.find_next_occurrence(&after, false).ok());
    Ok(next.and_then(|next| Timestamp::from_second(next.timestamp()).ok()))
}
