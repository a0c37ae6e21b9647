//! Configurations that users write themselves, in a ConfigMap.

use std::collections::BTreeMap;

use crate::{
    configuration::check_both,
    farm::{Component, objects::hash_of},
    jsonnet::Evaluate,
    schema::{Finding, Program, Schema, version_of},
};

/// The ConfigMap that a component names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserConfig {
    /// It does not exist.
    Missing,
    /// It does not have a file that the component needs.
    MissingKey(String),
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

/// Checks the ConfigMap of a component.
pub(super) async fn check(
    component: &Component,
    config_map: &str,
    files: &BTreeMap<String, String>,
    evaluator: &dyn Evaluate,
) -> UserConfig {
    let mut main = None;
    let mut findings = Vec::new();
    for (program, names) in wanted_files(component, config_map) {
        let Some(name) = names.iter().find(|name| files.contains_key(*name)) else {
            return UserConfig::MissingKey(names.join(" or "));
        };
        main.get_or_insert_with(|| name.clone());
        let variables = variables(component);
        let schema = Schema::of(version_of(component.image()).schema());
        match evaluator.evaluate(files, name, &variables).await {
            Ok(value) => {
                let found = check_both(schema, program, &value);
                findings.extend(found.into_iter().map(|finding| (name.clone(), finding)));
            }
            Err(error) => {
                let finding = Finding::new("", error.to_string());
                findings.push((name.clone(), finding));
            }
        }
    }
    UserConfig::Present {
        hash: hash_of(&format!("{files:?}")),
        file: main.unwrap_or_default(),
        findings,
    }
}

/// Environment variables are external variables of the configuration. Those of a pod are not known before
/// it runs; values that are not in the spec are replaced by their names.
fn variables(component: &Component) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::from([
        ("NODE_NAME".to_owned(), "node".to_owned()),
        ("POD_NAME".to_owned(), "pod".to_owned()),
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
