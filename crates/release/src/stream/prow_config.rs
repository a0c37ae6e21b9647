//! The job configuration of Prow: its periodics, by name.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::Reloaded;

/// The parts of Prow's configuration that are used.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProwConfig {
    /// The periodics by name.
    pub periodics: BTreeMap<String, Periodic>,
    /// New ProwJobs wait for the scheduler of Prow.
    pub scheduler_enabled: bool,
}

/// A periodic of Prow.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub struct Periodic {
    /// Its name.
    pub name: String,
    /// What runs it.
    #[serde(default)]
    pub agent: String,
    /// The build cluster.
    #[serde(default)]
    pub cluster: String,
    /// The namespace of its pods.
    #[serde(default)]
    pub namespace: String,
    /// Labels of its ProwJobs.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Annotations of its ProwJobs.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// Its pod.
    #[serde(default)]
    pub spec: Option<Value>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Fields of a periodic that its ProwJobs have under the same name.
const COPIED: [&str; 8] = [
    "decoration_config",
    "error_on_eviction",
    "extra_refs",
    "hidden",
    "job_queue_name",
    "max_concurrency",
    "reporter_config",
    "rerun_auth_config",
];

impl Periodic {
    /// The fields that its ProwJobs have under the same name.
    pub fn copied(&self) -> Map<String, Value> {
        let copied = self
            .other
            .iter()
            .filter(|(name, _)| COPIED.contains(&name.as_str()));
        copied
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// A file of the job configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProwConfigError {
    /// It is not the configuration of jobs.
    #[error("{file} is not a job configuration of Prow: {cause}")]
    Unreadable {
        /// The file.
        file: String,
        /// What the parser says.
        cause: String,
    },
    /// Two periodics have one name.
    #[error("{file}: the periodic {name} is defined before, in {other}")]
    Twice {
        /// The file of the second.
        file: String,
        /// The file of the first.
        other: String,
        /// The name.
        name: String,
    },
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct JobFile {
    periodics: Vec<Periodic>,
    scheduler: Scheduler,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Scheduler {
    enabled: bool,
}

impl ProwConfig {
    /// The configuration in these files, by their names.
    pub fn parse<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ProwConfigError> {
        let mut config = Self::default();
        let mut defined: BTreeMap<String, String> = BTreeMap::new();
        for (file, text) in files {
            if text.trim().is_empty() {
                continue;
            }
            let parsed: JobFile =
                serde_saphyr::from_str(text).map_err(|error| ProwConfigError::Unreadable {
                    file: file.to_owned(),
                    cause: error.to_string(),
                })?;
            config.scheduler_enabled |= parsed.scheduler.enabled;
            for periodic in parsed.periodics {
                let name = periodic.name.clone();
                if let Some(other) = defined.insert(name.clone(), file.to_owned()) {
                    let file = file.to_owned();
                    return Err(ProwConfigError::Twice { file, other, name });
                }
                config.periodics.insert(name, periodic);
            }
        }
        Ok(config)
    }
}

/// The job configuration as it was last loaded.
pub type SharedProwConfig = Reloaded<ProwConfig>;

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "periodics:\n- name: e2e-aws\n  agent: kubernetes\n  cluster: build01\n  interval: 24h\n  \
        decorate: true\n  max_concurrency: 2\n  labels: {a: b}\n  spec:\n    containers:\n    - image: x\n";

    #[test]
    fn periodics_are_read_with_everything_that_their_runs_need() {
        let config = ProwConfig::parse([("jobs.yaml", FILE), ("empty.yaml", "")]).unwrap();
        let periodic = &config.periodics["e2e-aws"];
        assert_eq!(
            (periodic.cluster.as_str(), periodic.labels["a"].as_str()),
            ("build01", "b")
        );
        let copied = serde_json::to_value(periodic.copied()).unwrap();
        assert_eq!(copied, serde_json::json!({"max_concurrency": 2}));
        let scheduled = ProwConfig::parse([("config.yaml", "scheduler: {enabled: true}")]).unwrap();
        assert!(scheduled.scheduler_enabled);
    }

    #[test]
    fn a_broken_file_is_named_and_the_last_configuration_stays() {
        let error = ProwConfig::parse([("jobs.yaml", "periodics: 5")]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("jobs.yaml is not a job configuration"),
            "{error}"
        );
        let error = ProwConfig::parse([("a.yaml", FILE), ("b.yaml", FILE)]).unwrap_err();
        let twice = "b.yaml: the periodic e2e-aws is defined before, in a.yaml";
        assert_eq!(error.to_string(), twice);
        let shared = SharedProwConfig::default();
        assert!(shared.replace(ProwConfig::parse([("a.yaml", FILE)]).unwrap()));
        assert!(!shared.replace(ProwConfig::parse([("a.yaml", FILE)]).unwrap()));
        assert_eq!(shared.get().periodics.len(), 1);
    }
}
