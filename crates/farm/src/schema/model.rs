//! The messages of a schema.

use std::{collections::BTreeMap, sync::OnceLock};

use serde::Deserialize;

use super::SchemaVersion;

/// One of the five programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Program {
    /// bb_storage, also the frontend.
    Storage,
    /// bb_scheduler.
    Scheduler,
    /// bb_worker.
    Worker,
    /// bb_runner.
    Runner,
    /// bb_browser.
    Browser,
}

impl Program {
    /// The name of its configuration's message.
    pub fn message(self) -> &'static str {
        match self {
            Self::Storage => "buildbarn.configuration.bb_storage.ApplicationConfiguration",
            Self::Scheduler => "buildbarn.configuration.bb_scheduler.ApplicationConfiguration",
            Self::Worker => "buildbarn.configuration.bb_worker.ApplicationConfiguration",
            Self::Runner => "buildbarn.configuration.bb_runner.ApplicationConfiguration",
            Self::Browser => "buildbarn.configuration.bb_browser.ApplicationConfiguration",
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Storage => "bb_storage",
            Self::Scheduler => "bb_scheduler",
            Self::Worker => "bb_worker",
            Self::Runner => "bb_runner",
            Self::Browser => "bb_browser",
        }
    }
}

/// A field of a message.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Field {
    /// A scalar type, `message` or `enum`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The message or enum.
    #[serde(rename = "ref", default)]
    pub reference: Option<String>,
    /// Whether it is a list.
    #[serde(default)]
    pub repeated: bool,
    /// The type of the keys, if it is a map.
    #[serde(default)]
    pub key: Option<String>,
    /// The oneof that it is a member of.
    #[serde(default)]
    pub oneof: Option<String>,
}

/// The messages and enums of a version.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Schema {
    messages: BTreeMap<String, BTreeMap<String, Field>>,
    enums: BTreeMap<String, BTreeMap<String, i64>>,
}

impl Schema {
    /// The schema of a version.
    pub fn of(version: SchemaVersion) -> &'static Self {
        static NEWEST: OnceLock<Schema> = OnceLock::new();
        static MARCH: OnceLock<Schema> = OnceLock::new();
        let newest = NEWEST.get_or_init(|| parse(include_str!("../../data/schema-2026-08.json")));
        match version {
            SchemaVersion::Newest => newest,
            SchemaVersion::March2026 => MARCH.get_or_init(|| {
                let mut schema = newest.clone();
                // Only what differs is stored.
                let older = parse(include_str!("../../data/schema-2026-03.json"));
                schema.messages.extend(older.messages);
                schema
            }),
        }
    }

    /// The fields of a message by their JSON names; none if the message is not part of the schema.
    pub fn message(&self, name: &str) -> Option<&BTreeMap<String, Field>> {
        self.messages.get(name)
    }

    /// The values of an enum.
    pub fn enumeration(&self, name: &str) -> Option<&BTreeMap<String, i64>> {
        self.enums.get(name)
    }

    /// The names of all messages.
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.messages.keys().map(String::as_str)
    }
}

/// The data are part of the program; a test reads them.
fn parse(text: &str) -> Schema {
    serde_json::from_str(text).unwrap_or_default()
}
