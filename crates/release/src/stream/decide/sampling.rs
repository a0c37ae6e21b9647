//! Upgrades to a Stable release: from which releases they are tested.
//!
//! All that a release names as previous are too many. Of each minor version the newest three, the oldest
//! three and three between them are tested; which three follows from the list itself.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};

use super::{
    Draft,
    environment::Images,
    pending::unread,
    run::{Request, RunKind, prow_job},
};
use crate::{
    names,
    stream::facts::{Release, public_repository},
    version,
};

/// A list with fewer versions is tested as a whole.
const ALL_BELOW: usize = 9;
/// How many of the newest, of the oldest, and of those between.
const SAMPLED: usize = 3;
/// Where official releases are.
const OFFICIAL: &str = "quay.io/openshift-release-dev/ocp-release";

/// The versions from which upgrades are tested.
pub(super) fn sample(previous: &[String]) -> Vec<String> {
    let mut buckets: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for text in previous {
        if let Some(version) = version::parse(text) {
            let bucket = format!("{}.{:02}", version.major, version.minor);
            buckets.entry(bucket).or_default().push(text);
        }
    }
    let mut sampled = Vec::new();
    for bucket in buckets.values_mut() {
        bucket.sort_by(|a, b| version::newest_first(a, b));
        bucket.dedup();
        if bucket.len() < ALL_BELOW {
            sampled.extend(bucket.iter().map(|it| (*it).clone()));
            continue;
        }
        let between = bucket.len() - SAMPLED;
        sampled.extend(bucket[..SAMPLED].iter().map(|it| (*it).clone()));
        sampled.extend(chosen(&bucket[SAMPLED..between]).into_iter().cloned());
        sampled.extend(bucket[between..].iter().map(|it| (*it).clone()));
    }
    sampled
}

/// Three of the versions between: those whose hash, together with the whole list, is lowest.
fn chosen<'a>(between: &[&'a String]) -> Vec<&'a String> {
    let all: String = between.iter().map(|it| it.as_str()).collect();
    let mut ranked: Vec<_> = between
        .iter()
        .map(|it| {
            (
                digest(&SHA256, format!("{all}\n{it}").as_bytes())
                    .as_ref()
                    .to_vec(),
                *it,
            )
        })
        .collect();
    ranked.sort();
    let mut chosen: Vec<_> = ranked.into_iter().take(SAMPLED).map(|(_, it)| it).collect();
    chosen.sort_by(|a, b| version::newest_first(a, b));
    chosen
}

pub(super) fn decide(draft: &mut Draft<'_>, release: &Release<'_>) {
    let facts = draft.facts;
    let platforms: Vec<_> = draft.config.upgraded_on().collect();
    if !draft.config.is_stable() || platforms.is_empty() {
        return;
    }
    let tag = release.name();
    let Some(previous) = facts.previous.get(tag) else {
        return unread(draft, tag, "the releases before it");
    };
    let launched = facts.runs.get(tag);
    for (at, version) in sample(previous).iter().enumerate() {
        // Whole names are compared: 4.10.1 is not 4.10.10.
        let is_there = platforms.iter().any(|(platform, _)| {
            let name = names::upgrade_run(tag, version, platform);
            launched.is_some_and(|launched| launched.contains(&name))
                || facts.taken.contains_key(&name)
                || is_recorded(release, &name)
        });
        if is_there {
            continue;
        }
        let (platform, job) = platforms[at % platforms.len()];
        if let Err(problem) = launch(draft, release, version, platform, job) {
            draft.problem(
                "ProwJobInvalid",
                format!("{tag}: upgrade from {version}: {problem}"),
            );
        }
    }
}

fn is_recorded(release: &Release<'_>, name: &str) -> bool {
    let status = release.payload.and_then(|payload| payload.status.as_ref());
    let jobs = status.iter().flat_map(|status| &status.upgrade_job_results);
    let mut results = jobs.flat_map(|job| &job.results);
    results.any(|result| result.coordinates.name == name)
}

fn launch(
    draft: &mut Draft<'_>,
    release: &Release<'_>,
    version: &str,
    platform: &str,
    job: &str,
) -> Result<(), String> {
    let facts = draft.facts;
    let tag = release.name();
    let latest = facts.pull_spec(draft.config, release.tag);
    let latest = latest.ok_or("the release has no public repository")?;
    let architecture = facts.options.architecture;
    let mirror = facts.mirrors.get(&facts.mirror_name(draft.config, tag));
    let request = Request {
        name: names::upgrade_run(tag, version, platform),
        kind: RunKind::Verification,
        key: platform,
        periodic: job,
        job: None,
        tag,
        payload_uid: release
            .payload
            .and_then(|payload| payload.metadata.uid.as_deref()),
        from_tag: Some(version.to_owned()),
        images: Images {
            latest,
            initial: Some(format!(
                "{OFFICIAL}:{version}-{}",
                architecture.in_official_tags()
            )),
            is_upgrade: true,
            mirror_repository: mirror.and_then(|it| public_repository(it, &facts.options)),
            is_reference: release.tag.reference,
            architecture,
            analysis: Vec::new(),
        },
    };
    let run = prow_job(facts, &request).map_err(|problem| problem.to_string())?;
    draft.create_run(run);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_versions_are_all_tested_and_of_many_the_same_nine() {
        let few: Vec<_> = (0..8).map(|it| format!("4.9.{it}")).collect();
        assert_eq!(sample(&few).len(), 8);
        let many: Vec<_> = (0..40)
            .map(|it| format!("4.10.{it}"))
            .chain(["4.9.3".to_owned()])
            .collect();
        let sampled = sample(&many);
        assert_eq!(sampled.len(), 10);
        assert_eq!(sampled[0], "4.9.3", "the lower minor version is first");
        assert_eq!(sampled[1..4], ["4.10.39", "4.10.38", "4.10.37"]);
        assert_eq!(sampled[7..], ["4.10.2", "4.10.1", "4.10.0"]);
        let mut shuffled = many.clone();
        shuffled.reverse();
        assert_eq!(
            sample(&shuffled),
            sampled,
            "the order of the list does not matter"
        );
        let more: Vec<_> = many.iter().cloned().chain(["4.10.40".to_owned()]).collect();
        assert_ne!(sample(&more)[4..7], sampled[4..7]);
        assert_eq!(sample(&["next".to_owned()]), Vec::<String>::new());
    }
}
