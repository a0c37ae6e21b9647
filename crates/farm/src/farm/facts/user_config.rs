//! Configurations that users write themselves, in a ConfigMap.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use super::pool_match;
use crate::{
    configuration::check_both,
    farm::{Component, objects::hash_of},
    jsonnet::{Evaluate, EvaluationError},
    schema::{Finding, Program, Schema, version_of},
    startup::{ListenAddress, listen_addresses},
};

/// The number of findings that are kept: a configuration may be all wrong, and few are shown.
pub(crate) const MAX_FINDINGS: usize = 20;
/// The length of a text of a finding, which may quote a whole configuration.
const MAX_FINDING_CHARS: usize = 500;
/// The number of evaluations that take too long until this is a finding. A busy machine delays one; a file that
/// never ends would be evaluated for ever, because such a machine does not give it the processor time that ends it.
pub(super) const MAX_TIMEOUTS: u32 = 3;
/// The name of the pod in an evaluation.
const POD_NAME: &str = "pod";

/// The ConfigMap that a component names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserConfig {
    /// It does not exist.
    Missing,
    /// It does not have a file that the component needs.
    MissingKey(String),
    /// It exists, and is not evaluated yet.
    Evaluating {
        /// A hash of its content.
        hash: String,
        /// The file of the main program.
        file: String,
        /// Why it could not be evaluated the last time.
        failure: Option<String>,
        /// The delay after which to ask again.
        ask_again: Option<Duration>,
    },
    /// It exists.
    Present {
        /// A hash of its content.
        hash: String,
        /// The file of the main program.
        file: String,
        /// What is wrong with it, each with its file.
        findings: Vec<(String, Finding)>,
    },
}

/// The files that the programs of a component read, with all spellings of their names.
fn wanted_files(component: &Component, config_map: &str) -> Vec<(Program, Vec<String>)> {
    let file = |name: &str| vec![format!("{name}.jsonnet")];
    let program = component.kind.program();
    if let Some(worker) = component.worker() {
        let instance = worker.instance_name();
        return vec![
            (program, file(&format!("worker-{instance}"))),
            (Program::Runner, file(&format!("runner-{instance}"))),
        ];
    }
    let mut names = file(component.kind.app());
    if component.scheduler().is_some() {
        // The original named the file after the ConfigMap.
        names.extend(file(config_map));
    }
    vec![(program, names)]
}

/// The programs of a component, each with its file, or the name of a file that is missing.
pub(super) fn programs(
    component: &Component,
    config_map: &ConfigMap,
) -> Result<Vec<(Program, String)>, String> {
    let has = |name: &&String| {
        config_map
            .data
            .iter()
            .any(|files| files.contains_key(*name))
    };
    let wanted = wanted_files(component, &config_map.name_any()).into_iter();
    let found = wanted.map(|(program, names)| match names.iter().find(has) {
        Some(name) => Ok((program, name.clone())),
        None => Err(names.join(" or ")),
    });
    found.collect()
}

/// A hash of the content of a ConfigMap.
pub(super) fn content_hash(config_map: &ConfigMap) -> String {
    let files = config_map.data.clone().unwrap_or_default();
    hash_of(format!("{files:?}"))
}

/// Checks the ConfigMap of a component, whose evaluation was stopped `timeouts` times before. Fails if the
/// configuration could not be evaluated for a reason outside of it.
pub(super) async fn check(
    component: &Component,
    config_map: &ConfigMap,
    evaluator: &dyn Evaluate,
    timeouts: u32,
) -> Result<UserConfig, EvaluationError> {
    let files = config_map.data.clone().unwrap_or_default();
    let mut findings = Vec::new();
    let mut ports: Vec<(String, ListenAddress)> = Vec::new();
    let programs = match programs(component, config_map) {
        Ok(programs) => programs,
        Err(missing) => return Ok(UserConfig::MissingKey(missing)),
    };
    for (program, name) in &programs {
        let variables = variables(component);
        let schema = Schema::of(version_of(component.image()).schema());
        match evaluator.evaluate(&files, name, &variables).await {
            Ok(value) => {
                let mut found = check_both(schema, *program, &value);
                if let (Program::Worker, Some(pool)) = (program, component.worker()) {
                    found.extend(pool_match::differences(pool, &value, POD_NAME));
                }
                findings.extend(found.into_iter().map(|finding| (name.clone(), finding)));
                let addresses = listen_addresses(&value);
                findings.extend(taken(&ports, name, &addresses));
                ports.extend(addresses.into_iter().map(|address| (name.clone(), address)));
            }
            Err(EvaluationError::TimedOut(bound)) if timeouts + 1 >= MAX_TIMEOUTS => {
                let problem = format!("it was stopped after {bound}, {MAX_TIMEOUTS} times");
                findings.push((name.clone(), Finding::new("", problem)));
            }
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => {
                let finding = Finding::new("", error.to_string());
                findings.push((name.clone(), finding));
            }
        }
    }
    findings.truncate(MAX_FINDINGS);
    for (_, finding) in &mut findings {
        shorten(&mut finding.path);
        shorten(&mut finding.problem);
        finding.suggestion.iter_mut().for_each(shorten);
    }
    let main = programs.into_iter().next().map(|(_, file)| file);
    Ok(UserConfig::Present {
        hash: content_hash(config_map),
        file: main.unwrap_or_default(),
        findings,
    })
}

fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MAX_FINDING_CHARS) {
        text.truncate(end);
        text.push('…');
    }
}

/// The ports of a program that another program of the same pod has.
fn taken(
    ports: &[(String, ListenAddress)],
    file: &str,
    addresses: &[ListenAddress],
) -> Vec<(String, Finding)> {
    let conflicts = addresses.iter().filter_map(|address| {
        let mut others = ports.iter();
        let (other, at) = others.find(|(_, other)| other.conflicts_with(address))?;
        let problem = format!(
            "is the port of {} in {other}, and both share a pod",
            at.path
        );
        Some((file.to_owned(), Finding::new(&*address.path, problem)))
    });
    conflicts.collect()
}

/// Environment variables are external variables of the configuration. Those of a pod are not known before
/// it runs; values that are not in the spec are replaced by their names.
fn variables(component: &Component) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::from([
        ("NODE_NAME".to_owned(), "node".to_owned()),
        ("POD_NAME".to_owned(), POD_NAME.to_owned()),
        ("POD_IP".to_owned(), "10.0.0.1".to_owned()),
    ]);
    let env = component.pod().into_iter().flat_map(|pod| &pod.env);
    for variable in env {
        let text = |field: &str| variable[field].as_str();
        if let Some(name) = text("name") {
            let value = text("value").unwrap_or(name);
            variables.insert(name.to_owned(), value.to_owned());
        }
    }
    variables
}
