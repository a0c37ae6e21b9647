//! The committed list of permitted differences, each with its reason.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::compare::Difference;

const LIST: &str = include_str!("../allowed.toml");
/// The list for the scenario files.
const SCENARIOS: &str = include_str!("../allowed-scenarios.toml");
/// Entries of both lists at most.
const MAX_ENTRIES: usize = 40;

/// A permitted difference.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PermittedDifference {
    pub kind: String,
    pub field: String,
    /// A part of the difference's rule.
    pub rule: String,
    /// Why it is permitted.
    pub reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    allow: Vec<PermittedDifference>,
}

/// The entries for random requests. Fails if there are too many, or one is too general.
pub fn entries() -> Result<Vec<PermittedDifference>> {
    both().map(|(random, _)| random)
}

/// The entries for the recordings of scenario files, which count as well.
pub fn scenario_entries() -> Result<Vec<PermittedDifference>> {
    both().map(|(_, scenarios)| scenarios)
}

fn both() -> Result<(Vec<PermittedDifference>, Vec<PermittedDifference>)> {
    let random = read("allowed.toml", LIST)?;
    let scenarios = read("allowed-scenarios.toml", SCENARIOS)?;
    check_number(random.len() + scenarios.len())?;
    Ok((random, scenarios))
}

fn check_number(all: usize) -> Result<()> {
    ensure!(
        all <= MAX_ENTRIES,
        "{all} entries in the two lists, at most {MAX_ENTRIES}"
    );
    Ok(())
}

/// Parses a list. Fails if an entry is too general.
pub fn read(file: &'static str, text: &str) -> Result<Vec<PermittedDifference>> {
    let list: List = toml::from_str(text).context(file)?;
    for entry in &list.allow {
        let whole = |text: &str| text.trim().is_empty() || text == "*";
        ensure!(
            ![&entry.kind, &entry.field, &entry.rule, &entry.reason]
                .into_iter()
                .any(|text| whole(text)),
            "an entry of {file} about {} {} is about too much",
            entry.kind,
            entry.field
        );
    }
    Ok(list.allow)
}

/// The index of the entry that permits a difference.
pub fn allowing(
    entries: &[PermittedDifference],
    kind: &str,
    difference: &Difference,
) -> Option<usize> {
    entries.iter().position(|entry| {
        entry.kind == kind
            && entry.field == difference.field
            && difference.rule.contains(&entry.rule)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_list_is_in_order() {
        entries().unwrap();
    }

    #[test]
    fn an_entry_names_a_kind_a_field_and_a_rule() {
        let entry = |kind: &str, field: &str, rule: &str| {
            format!(
                "[[allow]]\nkind = \"{kind}\"\nfield = \"{field}\"\nrule = \"{rule}\"\nreason = \"r\"\n"
            )
        };
        assert!(read("one.toml", &entry("Pod", "code", "x")).is_ok());
        for bad in [
            entry("Pod", "*", "x"),
            entry("Pod", "code", ""),
            entry("*", "code", "x"),
        ] {
            let error = read("one.toml", &bad).unwrap_err().to_string();
            assert!(error.contains("one.toml"), "{error}");
        }
    }

    #[test]
    fn both_lists_together_are_short() {
        assert!(check_number(40).is_ok());
        assert!(check_number(41).is_err());
    }
}
