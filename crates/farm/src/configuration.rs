//! The configurations of the five programs, rendered from the typed fields of the custom resources. Pure.
//!
//! Each component has a ConfigMap with its own file and `common.libsonnet`, which it imports. The files are
//! Jsonnet because the programs evaluate it: addresses and names of the pod come from its environment.
//! [`RenderedFiles::findings`] checks them like a user's own, with what the imports are replaced by.

mod access;
mod blobstore;
mod jsonnet_text;
mod programs;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use self::jsonnet_text::{code, jsonnet, resolve};
pub(crate) use self::{
    access::{TLS_FOLDER, TRUST_FOLDER},
    programs::geometry,
};
pub use self::{
    blobstore::{SharedStorage, shard_address},
    programs::{browser, frontend, scheduler, storage, worker},
};
use crate::{
    api::{ListenOn, ports},
    schema::{Finding, Program, Schema, check},
    startup,
};

/// The file that the others import.
pub const COMMON: &str = "common.libsonnet";

/// What the configurations of all programs of a farm have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarmSettings {
    /// The namespace.
    pub namespace: String,
    /// The shards, as clients use them.
    pub storage: SharedStorage,
    /// The largest message between programs.
    pub maximum_message_bytes: u64,
    /// Where links to actions lead.
    pub browser_url: String,
    /// The scheduler of each prefix of instance names: its name.
    pub schedulers: BTreeMap<String, String>,
}

impl FarmSettings {
    fn common(&self, listen: ListenOn) -> Value {
        let storage = &self.storage;
        json!({
            "blobstore": {
                "contentAddressableStorage": storage.backend(&self.namespace),
                "actionCache": {"completenessChecking": {
                    "backend": storage.backend(&self.namespace),
                    "maximumTotalTreeSizeBytes": 64 << 20,
                }},
            },
            "fileSystemAccessCache": storage.backend(&self.namespace),
            "browserUrl": self.browser_url,
            "maximumMessageSizeBytes": self.maximum_message_bytes,
            "global": global(listen, ports::DIAGNOSTICS),
        })
    }
}

/// The files of a component, and the programs that read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedFiles {
    /// The text of each file.
    pub files: BTreeMap<String, String>,
    /// The values that the programs get, for checks.
    configurations: Vec<(Program, String, Value)>,
}

impl RenderedFiles {
    fn new(common: Option<&Value>, configurations: Vec<(Program, String, Value)>) -> Self {
        let mut files = BTreeMap::new();
        if let Some(common) = common {
            files.insert(COMMON.to_owned(), jsonnet(common) + "\n");
        }
        let mut resolved = Vec::new();
        for (program, name, value) in configurations {
            let text = jsonnet(&value);
            let import = if text.contains("common.") {
                format!("local common = import '{COMMON}';\n\n")
            } else {
                String::new()
            };
            files.insert(name.clone(), format!("{import}{text}\n"));
            let value = resolve(&value, common.unwrap_or(&Value::Null));
            resolved.push((program, name, value));
        }
        Self {
            files,
            configurations: resolved,
        }
    }

    /// What is wrong with the files, each finding with its file.
    pub fn findings(&self, schema: &Schema) -> Vec<(String, Finding)> {
        let configurations = self.configurations.iter();
        let found = configurations.flat_map(|(program, file, value)| {
            let findings = check_both(schema, *program, value);
            findings.into_iter().map(|finding| (file.clone(), finding))
        });
        found.collect()
    }
}

/// The findings of both layers: the schema, and the rules of the start.
pub fn check_both(schema: &Schema, program: Program, value: &Value) -> Vec<Finding> {
    let mut findings = check(schema, program, value);
    findings.extend(startup::check(program, value));
    findings.sort();
    findings.dedup();
    findings
}

/// Health, metrics and profiles of a program.
fn global(listen: ListenOn, port: u16) -> Value {
    json!({"diagnosticsHttpServer": {
        "httpServers": [{
            "listenAddresses": [address(listen, port)],
            "authenticationPolicy": {"allow": {}},
        }],
        "enablePrometheus": true,
        "enablePprof": true,
        "enableActiveSpans": true,
    }})
}

/// The address on which a program listens.
fn address(listen: ListenOn, port: u16) -> Value {
    match listen {
        ListenOn::AllAddresses => Value::from(format!(":{port}")),
        ListenOn::PodIp => code(&format!(
            "(local ip = std.extVar('POD_IP'); if std.member(ip, ':') then '[' + ip + ']' else ip) + ':{port}'"
        )),
    }
}
