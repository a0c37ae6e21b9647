//! The payload of a release: what verifies it, written down once.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;

use super::upgrade_source::{NoSource, upgrade_source};
use crate::{
    api::{
        CIConfiguration, PayloadCoordinates, PayloadCreationConfig, PayloadOverride, PayloadType,
        PayloadVerificationConfig, ProwCoordinates, ReleaseCoordinates, ReleaseCreationCoordinates,
        ReleaseMirrorCoordinates, ReleasePayload, ReleasePayloadSpec, VerificationDataSource,
        annotations,
    },
    config::{ReleaseConfig, ReleaseVerification},
    image_stream::api::TagReference,
    names,
    stream::facts::{Facts, public_repository},
    version,
};

/// The verification jobs of a release, by key: those of its stream, and for a Stable release those that only
/// inform about it.
pub(super) fn verifications(
    facts: &Facts,
    config: &ReleaseConfig,
    tag: &str,
) -> Result<BTreeMap<String, ReleaseVerification>, String> {
    let mut all = config.verify.clone();
    if !config.is_stable() || facts.options.art_suffix.is_empty() {
        return Ok(all);
    }
    let Some(version) = version::parse(tag) else {
        return Ok(all);
    };
    let minor = format!("{}.{}", version.major, version.minor);
    // An ImageStream that is not there has no jobs: a release does not wait for it.
    let Some(informing) = facts.informing.get(&minor) else {
        return Ok(all);
    };
    let informing = informing.as_ref().map_err(Clone::clone)?;
    for (key, one) in &informing.verify {
        let qualifies =
            !one.optional && one.aggregated_prow_job.is_none() && !one.multi_job_analysis;
        if qualifies && !all.contains_key(key) {
            let optional = ReleaseVerification {
                optional: true,
                ..one.clone()
            };
            all.insert(key.clone(), optional);
        }
    }
    Ok(all)
}

/// The payload of the release `tag`.
pub(super) fn release_payload(
    facts: &Facts,
    config: &ReleaseConfig,
    tag: &TagReference,
) -> Result<ReleasePayload, String> {
    let all = verifications(facts, config, &tag.name)?;
    let asynchronous: Vec<_> = all
        .iter()
        .filter(|(_, one)| one.asynchronous && one.optional && !one.disabled)
        .map(|(key, _)| key.as_str())
        .collect();
    let mut annotations = BTreeMap::from([(
        annotations::RUN_KEY.to_owned(),
        facts.run_key.id().to_owned(),
    )]);
    if !asynchronous.is_empty() {
        annotations.insert(annotations::ASYNC_JOBS.to_owned(), asynchronous.join(","));
    }
    let skipped = without_source(facts, config, &tag.name, &all);
    if !skipped.is_empty() {
        let text = serde_json::to_string(&skipped).unwrap_or_default();
        annotations.insert(annotations::SKIPPED_JOBS.to_owned(), text);
    }
    let mut all = all;
    all.retain(|key, _| !skipped.contains_key(key));
    let mut payload = ReleasePayload {
        metadata: ObjectMeta {
            name: Some(tag.name.clone()),
            namespace: Some(facts.namespace().to_owned()),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: ReleasePayloadSpec {
            payload_coordinates: PayloadCoordinates {
                namespace: facts.namespace().to_owned(),
                stream_name: config.name.clone(),
                imagestream_name: facts.target_name().to_owned(),
                imagestream_tag_name: tag.name.clone(),
            },
            payload_creation_config: creation_config(facts, config, &tag.name),
            payload_override: PayloadOverride::default(),
            payload_verification_config: verification_config(config, &all),
            release_coordinates: release_coordinates(facts, config, tag)
                .into_iter()
                .collect(),
            payload_type: Some(if tag.reference {
                PayloadType::Reference
            } else {
                PayloadType::Local
            }),
        },
        status: None,
    };
    let token = facts.run_key.payload_token(&payload);
    let annotations = payload.metadata.annotations.get_or_insert_default();
    annotations.insert(annotations::PAYLOAD_TOKEN.to_owned(), token);
    Ok(payload)
}

/// The objects that create the release `tag`.
pub(super) fn creation_config(
    facts: &Facts,
    config: &ReleaseConfig,
    tag: &str,
) -> PayloadCreationConfig {
    let options = &facts.options;
    PayloadCreationConfig {
        release_creation_coordinates: ReleaseCreationCoordinates {
            namespace: options.job_namespace.clone(),
            release_creation_job_name: tag.to_owned(),
        },
        prow_coordinates: ProwCoordinates {
            namespace: options.prow_namespace.clone(),
        },
        release_mirror_coordinates: if config.has_alternate_repository() {
            ReleaseMirrorCoordinates {
                namespace: options.job_namespace.clone(),
                release_mirror_job_name: names::alternate_mirror_job(tag),
            }
        } else {
            ReleaseMirrorCoordinates::default()
        },
    }
}

/// The upgrade jobs that have no release to start from when the release is cut, and why. No verdict waits for
/// them: the first release of a stream could never be accepted. A blocking job whose configuration names no release
/// that there could ever be stays: without it, releases would be accepted that are not verified as they should be.
fn without_source(
    facts: &Facts,
    config: &ReleaseConfig,
    tag: &str,
    all: &BTreeMap<String, ReleaseVerification>,
) -> BTreeMap<String, String> {
    let default = if config.is_stable() {
        "PreviousPatch"
    } else {
        "Previous"
    };
    let upgrades = all
        .iter()
        .filter(|(_, one)| one.upgrade && !one.disabled && one.prow_job.is_some());
    upgrades
        .filter_map(|(key, one)| {
            let from = &one.upgrade_from;
            let from_release = one.upgrade_from_release.as_ref();
            let blocks = !one.optional || one.aggregated_prow_job.is_some();
            match upgrade_source(facts, config, tag, from, from_release, default) {
                Err(NoSource::Unsupported(_)) if blocks => None,
                Err(why) => Some((key.clone(), why.to_string())),
                Ok(_) => None,
            }
        })
        .collect()
}

fn verification_config(
    config: &ReleaseConfig,
    all: &BTreeMap<String, ReleaseVerification>,
) -> PayloadVerificationConfig {
    let (mut blocking, mut informing) = (Vec::new(), Vec::new());
    for (key, one) in all {
        // An entry without a Prow job launches nothing, so no verdict waits for it.
        let Some(job) = one.prow_job.as_ref().filter(|_| !one.disabled) else {
            continue;
        };
        let entry = CIConfiguration {
            name: key.clone(),
            job_name: job.name.clone(),
            qualifiers: one.qualifiers.clone(),
            ..CIConfiguration::default()
        };
        let max_retries = one.max_retries;
        match &one.aggregated_prow_job {
            Some(aggregated) => {
                blocking.push(CIConfiguration {
                    job_name: names::aggregator_job(key, aggregated.aggregator()),
                    max_retries,
                    ..entry.clone()
                });
                informing.push(CIConfiguration {
                    analysis_job_count: aggregated.analysis_job_count,
                    ..entry
                });
            }
            None if one.optional => informing.push(CIConfiguration {
                max_retries,
                ..entry
            }),
            None => blocking.push(CIConfiguration {
                max_retries,
                ..entry
            }),
        }
    }
    let upgrade = config.upgraded_on().map(|(platform, job)| CIConfiguration {
        name: platform.to_owned(),
        job_name: job.to_owned(),
        ..CIConfiguration::default()
    });
    PayloadVerificationConfig {
        blocking_jobs: blocking,
        informing_jobs: informing,
        upgrade_jobs: upgrade.collect(),
        payload_verification_data_source: Some(VerificationDataSource::BuildFarmLookup),
    }
}

fn release_coordinates(
    facts: &Facts,
    config: &ReleaseConfig,
    tag: &TagReference,
) -> Option<ReleaseCoordinates> {
    if tag.reference {
        let reference = config.reference_release.as_ref()?;
        return Some(ReleaseCoordinates {
            repository: reference.pull_repository.clone(),
            tag: names::reference_tag(&tag.name),
            digest: String::new(),
        });
    }
    Some(ReleaseCoordinates {
        repository: public_repository(facts.target.as_ref()?, &facts.options)?,
        tag: tag.name.clone(),
        digest: String::new(),
    })
}
