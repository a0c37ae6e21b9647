//! The configuration of a component: rendered and checked, or the user's own.

use crate::{
    configuration::{self, FarmSettings, RenderedFiles},
    farm::{
        Component, ComponentSpec,
        facts::{FarmFacts, MAX_FINDINGS, TrustConfig, UserConfig},
        objects::{self, ConfigSource},
        settings,
        validate::Problem,
    },
    schema::{Finding, Schema, version_of},
};

/// The number of findings in a message; the rest is counted.
const SHOWN_FINDINGS: usize = 5;

/// The size of the data of a ConfigMap.
const MAX_CONFIG_BYTES: usize = 1 << 20;

/// The reason of a component whose configuration is not evaluated yet.
pub(super) const EVALUATING: &str = "EvaluatingConfiguration";

pub(super) struct ConfigOutcome {
    pub(super) source: Option<ConfigSource>,
    pub(super) problem: Option<Problem>,
    pub(super) warnings: Vec<String>,
}

/// The configuration of a component with what its callers are checked with, and whether it may be rolled out.
pub(super) fn source(
    facts: &FarmFacts,
    component: &Component,
    settings: Option<&FarmSettings>,
) -> ConfigOutcome {
    let mut outcome = files(facts, component, settings);
    let evaluating = outcome.problem.take_if(|it| it.reason == EVALUATING);
    let problem = outcome.problem.or_else(|| trust_problem(facts, component));
    outcome.problem = problem.or(evaluating);
    if let (Some(source), Some(TrustConfig::Present { hash })) =
        (&mut outcome.source, facts.trust.get(component.uid()))
    {
        source.trust = Some(hash.clone());
    }
    outcome
}

/// Pods would wait for ever for a ConfigMap that does not exist, or end without the key.
fn trust_problem(facts: &FarmFacts, component: &Component) -> Option<Problem> {
    let (path, trust) = component.trust()?;
    let (name, key) = (&trust.config_map_name, &trust.key);
    match facts.trust.get(component.uid())? {
        TrustConfig::Missing => {
            let message = format!("{path}: the ConfigMap {name} does not exist; create it");
            Some(Problem::new("ConfigMapMissing", message))
        }
        TrustConfig::MissingKey => {
            let message = format!("{path}: the ConfigMap {name} has no key {key}; add it");
            Some(Problem::new("ConfigKeyMissing", message))
        }
        TrustConfig::Present { .. } => None,
    }
}

/// The files of a component.
fn files(
    facts: &FarmFacts,
    component: &Component,
    settings: Option<&FarmSettings>,
) -> ConfigOutcome {
    let version = version_of(component.image());
    let warnings: Vec<_> = version.warning(component.image()).into_iter().collect();
    let outcome = |source, problem| ConfigOutcome {
        source,
        problem,
        warnings: warnings.clone(),
    };
    if let Some(name) = component.config_map_name() {
        let (source, problem) = user_source(facts, component, name);
        return outcome(source, problem);
    }
    let Some(settings) = settings else {
        let message = "the farm has no BuildbarnStorage, which every program needs: create one in this \
             namespace with the same label buildbarn.io/farm";
        return outcome(None, Some(Problem::new("WaitingForStorage", message)));
    };
    let Some(files) = render(facts, component, settings) else {
        let message = "the farm has no BuildbarnScheduler for this pool";
        return outcome(None, Some(Problem::new("WaitingForScheduler", message)));
    };
    if let Some(problem) = too_large(&files) {
        return outcome(None, Some(problem));
    }
    let findings = files.findings(Schema::of(version.schema()));
    let (config_map, hash) = objects::config_map_name(component, &files.files);
    let source = ConfigSource {
        config_map,
        hash,
        file: main_file(component),
        rendered: Some(files.files),
        trust: None,
    };
    outcome(Some(source), invalid(&findings))
}

/// The API server would refuse the ConfigMap, again and again.
fn too_large(files: &RenderedFiles) -> Option<Problem> {
    let sizes = files
        .files
        .iter()
        .map(|(name, text)| name.len() + text.len());
    let size: usize = sizes.sum();
    (size > MAX_CONFIG_BYTES).then(|| {
        let message = format!(
            "the rendered configuration has {size} bytes, and a ConfigMap has at most {MAX_CONFIG_BYTES}: \
             use fewer shards, shorter names or fewer entries in the lists of the spec"
        );
        Problem::new("ConfigTooLarge", message)
    })
}

fn render(facts: &FarmFacts, component: &Component, farm: &FarmSettings) -> Option<RenderedFiles> {
    Some(match &component.spec {
        ComponentSpec::Storage(spec) => {
            configuration::storage(spec, farm, &objects::volume_names(spec))
        }
        ComponentSpec::Scheduler(spec) => configuration::scheduler("scheduler", spec, farm),
        ComponentSpec::Worker(spec) => {
            // A pool that is deleted together with its scheduler keeps its configuration.
            let scheduler = settings::scheduler_of(&facts.components, spec);
            let scheduler = match scheduler {
                Some(scheduler) => scheduler.name(),
                None if component.is_deleting() => "scheduler",
                None => return None,
            };
            configuration::worker(spec, farm, scheduler)
        }
        ComponentSpec::Frontend(spec) => configuration::frontend(spec, farm),
        ComponentSpec::Browser(spec) => configuration::browser(spec, farm),
    })
}

fn main_file(component: &Component) -> String {
    match component.worker() {
        Some(worker) => format!("worker-{}.jsonnet", worker.instance_name()),
        None => format!("{}.jsonnet", component.kind.app()),
    }
}

fn user_source(
    facts: &FarmFacts,
    component: &Component,
    name: &str,
) -> (Option<ConfigSource>, Option<Problem>) {
    let problem = |reason, message: String| (None, Some(Problem::new(reason, message)));
    if facts.claimed_elsewhere.contains(name) {
        let message = format!(
            "spec.configMapName: another farm of this namespace uses the ConfigMap {name} too; \
             a configuration belongs to one farm, so copy it"
        );
        return problem("ConfigMapShared", message);
    }
    match facts.user_configs.get(component.uid()) {
        None | Some(UserConfig::Missing) => {
            let message = format!(
                "spec.configMapName: the ConfigMap {name} does not exist; create it, or remove the \
                 field to have the configuration rendered"
            );
            problem("ConfigMapMissing", message)
        }
        Some(UserConfig::MissingKey(key)) => problem(
            "ConfigKeyMissing",
            format!("the ConfigMap {name} has no key {key}"),
        ),
        Some(UserConfig::Evaluating {
            hash,
            file,
            failure,
            ..
        }) => {
            let message = match failure {
                None => format!("the configuration in the ConfigMap {name} is being evaluated"),
                Some(failure) => format!(
                    "the configuration in the ConfigMap {name} is evaluated again: the last time, {failure}"
                ),
            };
            let problem = Problem::new(EVALUATING, message);
            (Some(user_config(name, hash, file)), Some(problem))
        }
        Some(UserConfig::Present {
            hash,
            file,
            findings,
        }) => (Some(user_config(name, hash, file)), invalid(findings)),
    }
}

fn user_config(config_map: &str, hash: &str, file: &str) -> ConfigSource {
    ConfigSource {
        config_map: config_map.to_owned(),
        hash: hash.to_owned(),
        file: file.to_owned(),
        rendered: None,
        trust: None,
    }
}

fn invalid(findings: &[(String, Finding)]) -> Option<Problem> {
    if findings.is_empty() {
        return None;
    }
    let shown = findings.iter().take(SHOWN_FINDINGS);
    let mut shown: Vec<_> = shown
        .map(|(file, finding)| format!("{file}: {finding}"))
        .collect();
    if findings.len() > SHOWN_FINDINGS {
        let at_least = if findings.len() < MAX_FINDINGS {
            ""
        } else {
            "at least "
        };
        let others = findings.len() - SHOWN_FINDINGS;
        shown.push(format!("and {at_least}{others} more"));
    }
    Some(Problem::new("ConfigInvalid", shown.join("\n")))
}
