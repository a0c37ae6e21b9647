//! The results of older releases, which are in an annotation of the tag.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Draft;
use crate::{
    api::{JobRunResult, JobRunState, JobStatus, VerificationDataSource},
    names::short_hash,
    payload::facts::LegacyFacts,
};

/// Shortened URLs in the annotation begin after this.
pub(super) const PROW_PREFIX: &str =
    "https://prow.ci.openshift.org/view/gs/test-platform-results/logs";

#[derive(Deserialize, Default)]
#[serde(default)]
struct VerificationStatus {
    state: String,
    url: String,
}

pub(super) fn decide(draft: &mut Draft<'_>) {
    let payload = draft.facts.payload.clone();
    let config = &payload.spec.payload_verification_config;
    if config.payload_verification_data_source
        != Some(VerificationDataSource::ImageStreamTagAnnotation)
    {
        return;
    }
    let at = &payload.spec.payload_coordinates;
    let tag = format!(
        "{}/{}:{}",
        at.namespace, at.imagestream_name, at.imagestream_tag_name
    );
    let text = match &draft.facts.legacy {
        LegacyFacts::NotUsed => return,
        LegacyFacts::NoTarget => {
            draft
                .warnings
                .push(format!("the ImageStream of {tag} does not exist"));
            return;
        }
        LegacyFacts::NoTag => {
            draft.warnings.push(format!("the tag {tag} does not exist"));
            return;
        }
        LegacyFacts::Annotation(text) if text.is_empty() => {
            let warning =
                format!("unable to determine job status results for imagestreamtag: {tag}");
            draft.warnings.push(warning);
            return;
        }
        LegacyFacts::Annotation(text) => text,
    };
    let parsed: Result<Option<BTreeMap<String, VerificationStatus>>, _> =
        serde_json::from_str(text);
    let results = match parsed {
        Ok(results) => results.unwrap_or_default(),
        Err(error) => {
            let warning = format!("unable to unmarshal VerificationStatusMap of {tag}: {error}");
            draft.warnings.push(warning);
            return;
        }
    };
    let name = payload.metadata.name.clone().unwrap_or_default();
    for (key, result) in results {
        let status = &mut draft.status;
        let mut jobs = status
            .blocking_job_results
            .iter_mut()
            .chain(&mut status.informing_job_results);
        let matches = |job: &JobStatus| {
            job.name == key || key.contains(&short_hash(&format!("{name}-{}", job.name)))
        };
        match jobs.find(|job| matches(job)) {
            Some(job) => record(job, &result),
            None => draft
                .warnings
                .push(format!("unable to locate job results for {key}")),
        }
    }
}

fn record(job: &mut JobStatus, result: &VerificationStatus) {
    let state = match result.state.as_str() {
        "Failed" => JobRunState::Failure,
        "Pending" => JobRunState::Pending,
        "Succeeded" => JobRunState::Success,
        _ => JobRunState::Unknown,
    };
    let url = if result.url.starts_with('/') {
        format!("{PROW_PREFIX}{}", result.url)
    } else {
        result.url.clone()
    };
    if !job
        .results
        .iter()
        .any(|known| known.state == state && known.url == url)
    {
        job.results.push(JobRunResult {
            state,
            url,
            ..JobRunResult::default()
        });
    }
}
