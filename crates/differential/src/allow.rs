//! The committed list of differences that are allowed, each with its reason.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::compare::Difference;

const LIST: &str = include_str!("../allowed.toml");
/// The same for what the scenario files show.
const SCENARIOS: &str = include_str!("../allowed-scenarios.toml");
/// The list may not grow beyond this.
const MOST: usize = 40;

/// One entry.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The kind it is about.
    pub kind: String,
    /// The field it is about.
    pub field: String,
    /// Part of what is said about the difference.
    pub rule: String,
    /// Why it is allowed.
    pub reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    allow: Vec<Entry>,
}

/// The entries, if there are not too many and each says what it is about.
pub fn entries() -> Result<Vec<Entry>> {
    both().map(|(random, _)| random)
}

/// The entries about the recordings of scenario files; they count, too.
pub fn scenario_entries() -> Result<Vec<Entry>> {
    both().map(|(_, scenarios)| scenarios)
}

fn both() -> Result<(Vec<Entry>, Vec<Entry>)> {
    let random = read("allowed.toml", LIST)?;
    let scenarios = read("allowed-scenarios.toml", SCENARIOS)?;
    check_number(random.len() + scenarios.len())?;
    Ok((random, scenarios))
}

fn check_number(all: usize) -> Result<()> {
    ensure!(
        all <= MOST,
        "{all} entries in the two lists, at most {MOST}"
    );
    Ok(())
}

/// The entries of a list, if each says what it is about.
pub fn read(file: &'static str, text: &str) -> Result<Vec<Entry>> {
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

/// The entry that allows a difference.
pub fn allowing(entries: &[Entry], kind: &str, difference: &Difference) -> Option<usize> {
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
