//! Column definitions, and those of built-in kinds.

use std::{collections::HashMap, sync::LazyLock};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::discovery::group_version;

/// One entry of `columnDefinitions`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ColumnDefinition {
    /// As in the header line.
    pub name: String,
    /// JSON type of the cells, or `date`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Such as `name`, for the column that names the object.
    #[serde(default)]
    pub format: String,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// Above zero: shown only with `-o wide`.
    #[serde(default)]
    pub priority: i64,
}

// The file is generated and committed, and a test parses it: an unreadable one is empty here.
static PUBLISHED: LazyLock<HashMap<String, Vec<ColumnDefinition>>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../data/columns.json")).unwrap_or_default()
});

/// The columns of a built-in kind that has its own.
pub(super) fn published(
    group: &str,
    version: &str,
    plural: &str,
) -> Option<&'static [ColumnDefinition]> {
    let resource = format!("{}/{plural}", group_version(group, version));
    PUBLISHED.get(&resource).map(Vec::as_slice)
}

#[cfg(test)]
pub(super) fn all() -> &'static HashMap<String, Vec<ColumnDefinition>> {
    &PUBLISHED
}

impl ColumnDefinition {
    fn plain(name: &str, format: &str, description: &str) -> Self {
        Self {
            name: name.into(),
            kind: "string".into(),
            format: format.into(),
            description: description.into(),
            priority: 0,
        }
    }

    /// The first column of every kind.
    pub fn name() -> Self {
        Self::plain(
            "Name",
            "name",
            "The object's name, unique among its kind in its namespace.",
        )
    }

    /// The last column of kinds without others.
    pub fn age() -> Self {
        Self::plain("Age", "", "How long ago the object was created.")
    }

    /// As in `columnDefinitions`.
    pub fn to_value(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }
}
