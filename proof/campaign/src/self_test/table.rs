//! The table of planted mistakes.

use anyhow::{Result, ensure};
use serde::Deserialize;

/// A planted mistake.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Bug {
    pub(super) name: String,
    /// The class that studies of operator bugs assign it to.
    pub(super) class: String,
    /// Whether a guard against faults is removed.
    pub(super) guard: bool,
    /// The workloads that are to reveal it.
    pub(super) workloads: Vec<String>,
    /// The ids of the oracles, any of which must report it.
    pub(super) expect: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Table {
    bug: Vec<Bug>,
}

/// The mistakes whose names contain `only`. The table must list all that can be planted.
pub(super) fn read(only: &str) -> Result<Vec<Bug>> {
    let table: Table = toml::from_str(include_str!("../../seeded.toml"))?;
    let mut bugs = table.bug;
    plantable(&bugs)?;
    bugs.retain(|bug| bug.name.contains(only));
    ensure!(!bugs.is_empty(), "no mistake has {only:?} in its name");
    Ok(bugs)
}

#[cfg(feature = "seeded")]
fn plantable(bugs: &[Bug]) -> Result<()> {
    let mut told: Vec<&str> = bugs.iter().map(|bug| bug.name.as_str()).collect();
    let mut known = neap_kit::seeded::Bug::NAMES.to_vec();
    known.push(neap_trial::seeded::NAME);
    told.sort_unstable();
    known.sort_unstable();
    ensure!(
        told == known,
        "the table has {told:?}, the code has {known:?}"
    );
    Ok(())
}

#[cfg(not(feature = "seeded"))]
fn plantable(_: &[Bug]) -> Result<()> {
    anyhow::bail!("this was built without mistakes to plant: cargo xtask faults --self-test")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all() -> Vec<Bug> {
        let table: Table = toml::from_str(include_str!("../../seeded.toml")).unwrap();
        table.bug
    }

    #[test]
    fn there_are_enough_and_half_of_them_are_removed_guards() {
        let bugs = all();
        let names: BTreeSet<_> = bugs.iter().map(|bug| &bug.name).collect();
        assert_eq!(names.len(), bugs.len(), "a name is there twice");
        assert!(bugs.len() >= 40);
        assert!(bugs.iter().filter(|bug| bug.guard).count() * 2 >= bugs.len());
    }

    #[test]
    fn each_has_workloads_that_exist_and_oracles_to_speak() {
        let known: BTreeSet<_> = crate::workloads().iter().map(|it| it.name).collect();
        for bug in all() {
            assert!(!bug.expect.is_empty(), "{}", bug.name);
            assert!(!bug.workloads.is_empty(), "{}", bug.name);
            for workload in &bug.workloads {
                assert!(
                    known.contains(workload.as_str()),
                    "{}: {workload}",
                    bug.name
                );
            }
        }
    }
}
