//! The checks of `neap release validate`: stricter than what controllers accept.

use std::collections::BTreeMap;

use super::{
    ConfigError, Problem, ReleaseConfig, ReleasePeriodic, ReleaseVerification,
    parse::{CONFIG_MAP_LIMIT, parse_with_unknown, problems},
};

/// A configuration and what is wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The configuration, as far as it could be read.
    pub config: Option<ReleaseConfig>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// Checks one configuration.
pub fn check(text: &str) -> Checked {
    let (config, unknown) = match parse_with_unknown(text, CONFIG_MAP_LIMIT) {
        Ok(parsed) => parsed,
        Err(ConfigError::Invalid(problems)) => {
            return Checked {
                config: None,
                problems,
            };
        }
        Err(error) => {
            return Checked {
                config: None,
                problems: vec![Problem::new("", error.to_string())],
            };
        }
    };
    let unknown = unknown.into_iter();
    let unknown = unknown.map(|path| Problem::new(path, "there is no such field"));
    let mut problems: Vec<_> = unknown.chain(problems(&config)).collect();
    for (key, one) in &config.verify {
        check_verification(key, one, &mut problems);
    }
    for (key, one) in &config.periodic {
        check_periodic(key, one, &mut problems);
    }
    Checked {
        config: Some(config),
        problems,
    }
}

fn check_verification(key: &str, one: &ReleaseVerification, problems: &mut Vec<Problem>) {
    let mut refuse = |field: &str, message: &str| {
        problems.push(Problem::new(format!("verify.{key}{field}"), message));
    };
    if one.asynchronous && !one.optional {
        refuse(".async", "a job that is not waited for is optional");
    }
    if one.asynchronous && one.max_retries > 0 {
        refuse(
            ".maxRetries",
            "a job that is not waited for is not run again",
        );
    }
    if !one.upgrade_from.is_empty() && one.upgrade_from_release.is_some() {
        refuse(".upgradeFromRelease", "either this or upgradeFrom is set");
    }
    if let Some(from) = one.upgrade_from_release.as_ref().filter(|_| one.upgrade) {
        let is_local = from.candidate.is_some() || from.prerelease.is_some();
        let blocks = !one.disabled && !one.optional;
        if !is_local && from.official.is_none() {
            refuse(
                ".upgradeFromRelease",
                "candidate, prerelease or release is set",
            );
        } else if !is_local && blocks {
            refuse(
                ".upgradeFromRelease.release",
                "no update service is asked, so that this blocking job would never run: take candidate or \
                 prerelease, or make the job optional",
            );
        }
    }
    if one.optional && one.aggregated_prow_job.is_some() {
        refuse(
            ".optional",
            "runs that are analysed together are never optional",
        );
    }
    if ends_like_a_retry(key) {
        refuse(
            "",
            "a name that ends in a dash and digits would be read as the number of a retry",
        );
    }
    for (id, qualifier) in &one.qualifiers {
        let path = format!("verify.{key}.qualifiers.{id}");
        if qualifier.approval.is_some() {
            let message = "approval is set for all streams, not here";
            problems.push(Problem::new(format!("{path}.approval"), message));
        }
        problems.extend(qualifier.problems(&path));
    }
}

fn check_periodic(key: &str, one: &ReleasePeriodic, problems: &mut Vec<Problem>) {
    let mut refuse = |field: &str, message: String| {
        problems.push(Problem::new(format!("periodic.{key}{field}"), message));
    };
    if !one.upgrade_from.is_empty() && one.upgrade_from_release.is_some() {
        refuse(
            ".upgradeFromRelease",
            "either this or upgradeFrom is set".into(),
        );
    }
    if let Err((field, message)) = one.schedule() {
        refuse(field, message);
    }
}

fn ends_like_a_retry(key: &str) -> bool {
    let Some((_, end)) = key.rsplit_once('-') else {
        return false;
    };
    !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit())
}

/// Problems of several configurations together, by the name of their file: a periodic Prow job that two of
/// them use has only one history, and two streams of one name would take each other's releases.
pub fn check_all(configs: &BTreeMap<String, ReleaseConfig>) -> Vec<(String, Problem)> {
    let mut problems = same_streams(configs);
    problems.extend(same_periodics(configs));
    problems
}

fn same_streams(configs: &BTreeMap<String, ReleaseConfig>) -> Vec<(String, Problem)> {
    let mut users: BTreeMap<(&str, &str), Vec<&String>> = BTreeMap::new();
    for (file, config) in configs {
        let to = if config.is_stable() { "" } else { &config.to };
        users.entry((&config.name, to)).or_default().push(file);
    }
    let shared = users.into_iter().filter(|(_, files)| files.len() > 1);
    shared
        .flat_map(|((name, _), files)| {
            let places: Vec<_> = files.iter().map(|file| file.as_str()).collect();
            let message = format!(
                "several streams with the same target are called {name}: {}",
                places.join(", ")
            );
            let problem = Problem::new("name", message);
            files
                .into_iter()
                .map(move |file| (file.clone(), problem.clone()))
        })
        .collect()
}

fn same_periodics(configs: &BTreeMap<String, ReleaseConfig>) -> Vec<(String, Problem)> {
    let mut users: BTreeMap<&str, Vec<(&String, &String)>> = BTreeMap::new();
    for (file, config) in configs {
        for (key, one) in &config.periodic {
            if let Some(job) = &one.prow_job {
                users.entry(&job.name).or_default().push((file, key));
            }
        }
    }
    let shared = users.into_iter().filter(|(_, users)| users.len() > 1);
    shared
        .flat_map(|(job, users)| {
            let places: Vec<_> = users
                .iter()
                .map(|(file, key)| format!("{file}: {key}"))
                .collect();
            let message = format!(
                "the Prow job {job} is used in several places: {}",
                places.join(", ")
            );
            users.into_iter().map(move |(file, key)| {
                let path = format!("periodic.{key}.prowJob.name");
                (file.clone(), Problem::new(path, message.clone()))
            })
        })
        .collect()
}
