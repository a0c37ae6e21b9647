//! Recordings of a server's responses in a file, for comparison with those of another server.
//!
//! One JSON value per line: first the scenario's initial variables, then every response and every
//! event in the order of the file. Nothing is masked here; the comparison knows what may differ.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::{Failure, scenario::Scenario, server::wrong};

/// The file of one scenario being written.
#[derive(Debug)]
pub(crate) struct Recording {
    path: PathBuf,
    text: String,
}

impl Recording {
    /// A file in the folder that `NEAP_SCENARIO_RECORD` names, if it names one.
    pub(crate) fn of(scenario: &Scenario, namespace: &str, id: &str) -> Option<Self> {
        let folder = PathBuf::from(std::env::var_os("NEAP_SCENARIO_RECORD")?);
        let mut record = Self {
            path: folder.join(format!("{}.jsonl", scenario.name.replace('/', "."))),
            text: String::new(),
        };
        record.add(&json!({
            "scenario": scenario.name,
            "pocketOnly": scenario.pocket_only,
            "namespace": namespace,
            "id": id,
        }));
        Some(record)
    }

    pub(crate) fn add(&mut self, entry: &Value) {
        self.text.push_str(&entry.to_string());
        self.text.push('\n');
    }

    pub(crate) fn write(&self) -> Result<(), Failure> {
        fs::write(&self.path, &self.text).map_err(wrong)
    }
}
