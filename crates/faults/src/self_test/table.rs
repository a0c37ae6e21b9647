//! The mistakes there are.

use anyhow::{Result, ensure};
use serde::Deserialize;

/// One of them.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Bug {
    pub(super) name: String,
    /// As the studies of such mistakes sort them.
    pub(super) class: String,
    /// Something that is there against faults is taken away.
    pub(super) guard: bool,
    /// Those whose faults are to show it.
    pub(super) workloads: Vec<String>,
    /// The numbers of the oracles of which one has to speak.
    pub(super) expect: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Table {
    bug: Vec<Bug>,
}

/// Those whose names have `only` in them. All that can be planted must be in the table.
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
