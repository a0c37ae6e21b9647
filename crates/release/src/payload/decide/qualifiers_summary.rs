//! The qualifiers that the release has earned.
//!
//! A qualifier is decided by the jobs that refer to it, or by the approval of a team in a label.

use std::collections::{BTreeMap, BTreeSet};

use super::{Draft, aggregate};
use crate::{
    api::{
        CIConfiguration, JobReference, JobState, QualifierStatus, QualifiersSummary,
        ReleasePayloadStatus, labels,
    },
    config::{BadgeStatus, ReleaseQualifier},
};

pub(super) fn decide(draft: &mut Draft<'_>) {
    let facts = draft.facts;
    let config = &facts.payload.spec.payload_verification_config;
    let jobs = config.blocking_jobs.iter().chain(&config.informing_jobs);
    let labels = facts.payload.metadata.labels.clone().unwrap_or_default();
    let previous = draft.status.qualifiers_summary.clone().unwrap_or_default();
    let mut qualifiers = BTreeMap::new();
    for (id, jobs) in by_qualifier(jobs) {
        if let Some(global) = facts.qualifiers.0.get(id) {
            qualifiers.insert(id.to_owned(), by_jobs(global, id, &jobs, &draft.status));
        }
    }
    for (id, global) in &facts.qualifiers.0 {
        let is_decided_by_jobs = qualifiers.contains_key(id);
        if global.approval != Some(true) || is_decided_by_jobs {
            continue;
        }
        let state = match labels.get(&labels::approval(id)).map(String::as_str) {
            Some("Accepted") => JobState::Success,
            Some("Rejected") => JobState::Failure,
            _ => continue,
        };
        let approval = QualifierStatus {
            approval: true,
            ..summary(global, state)
        };
        qualifiers.insert(id.clone(), approval);
    }
    for (id, qualifier) in &mut qualifiers {
        if let Some(known) = previous.qualifiers.get(id) {
            qualifier
                .jira_notifications
                .clone_from(&known.jira_notifications);
        }
    }
    let failed = qualifiers
        .values()
        .filter(|it| it.aggregate_state == JobState::Failure);
    let labels: BTreeSet<_> = failed.flat_map(|it| it.failure_labels.clone()).collect();
    draft.status.qualifiers_summary = Some(QualifiersSummary {
        failure_labels: labels.into_iter().collect(),
        qualifiers,
    });
}

/// The jobs of each qualifier, in the order of their names.
fn by_qualifier<'a>(
    jobs: impl Iterator<Item = &'a CIConfiguration>,
) -> BTreeMap<&'a str, Vec<&'a CIConfiguration>> {
    let mut by_qualifier: BTreeMap<&str, Vec<&CIConfiguration>> = BTreeMap::new();
    for job in jobs {
        for id in job.qualifiers.keys() {
            by_qualifier.entry(id).or_default().push(job);
        }
    }
    for jobs in by_qualifier.values_mut() {
        jobs.sort_by(|a, b| (&a.name, &a.job_name).cmp(&(&b.name, &b.job_name)));
    }
    by_qualifier
}

fn by_jobs(
    global: &ReleaseQualifier,
    id: &str,
    jobs: &[&CIConfiguration],
    status: &ReleasePayloadStatus,
) -> QualifierStatus {
    // Where several jobs have settings of their own, those of the last job by name apply.
    let own = jobs.last().and_then(|job| job.qualifiers.get(id));
    let merged = own.map_or_else(|| global.clone(), |own| global.merged(own));
    let results = || {
        status
            .blocking_job_results
            .iter()
            .chain(&status.informing_job_results)
    };
    let states = jobs.iter().flat_map(|job| {
        let matching = results().filter(|it| it.name == job.name && it.job_name == job.job_name);
        matching.map(|it| it.state)
    });
    QualifierStatus {
        jobs: jobs
            .iter()
            .map(|job| JobReference {
                name: job.name.clone(),
                job_name: job.job_name.clone(),
            })
            .collect(),
        ..summary(&merged, aggregate(states))
    }
}

fn summary(merged: &ReleaseQualifier, state: JobState) -> QualifierStatus {
    let enabled = merged.enabled == Some(true);
    let passed = state == JobState::Success;
    let shown = match merged.payload_badge_status {
        Some(BadgeStatus::Yes) => true,
        Some(BadgeStatus::OnSuccess) => passed,
        Some(BadgeStatus::OnFailure) => state == JobState::Failure,
        Some(BadgeStatus::No) | None => false,
    };
    QualifierStatus {
        aggregate_state: state,
        badge_name: merged.badge_name.clone(),
        badge_earned: enabled && passed,
        badge_propagated: enabled && shown,
        failure_labels: merged.failure_labels.clone().unwrap_or_default(),
        ..QualifierStatus::default()
    }
}
