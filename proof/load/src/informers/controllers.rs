//! The controllers that run, and those that do not, with the reason.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

const LIST: &str = include_str!("controllers.txt");

/// The value of `--controllers`.
pub(super) fn list() -> String {
    running().collect::<Vec<_>>().join(",")
}

/// The names of those that run.
pub(super) fn running() -> impl Iterator<Item = &'static str> {
    lines().filter(|line| !line.starts_with('-'))
}

/// Fails unless the list names exactly the controllers that the program has.
pub(super) fn all_are_named(help: &str) -> Result<()> {
    let (_, rest) = help.split_once("All controllers: ").context("no list")?;
    let rest = rest.lines().next().unwrap_or_default();
    let has: BTreeSet<&str> = rest.split(',').map(str::trim).collect();
    let named: BTreeSet<&str> = lines().map(name).collect();
    let differ: Vec<_> = has.symmetric_difference(&named).collect();
    ensure!(
        differ.is_empty(),
        "controllers.txt and the program differ in {differ:?}"
    );
    Ok(())
}

fn lines() -> impl Iterator<Item = &'static str> {
    LIST.lines().filter(|line| !line.starts_with('#'))
}

fn name(line: &str) -> &str {
    let line = line.trim_start_matches('-');
    line.split_once(':').map_or(line, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_that_do_not_run_say_why() {
        for line in lines() {
            let off = line.starts_with('-');
            let reason = line
                .split_once(": ")
                .is_some_and(|(_, why)| !why.is_empty());
            assert_eq!(off, reason, "{line}");
        }
        assert!(running().count() > 20);
        assert!(!list().contains("attach-detach"));
    }

    #[test]
    fn unknown_controller_is_named() {
        let names: Vec<_> = lines().map(name).collect();
        let help = |names: &[&str]| format!("  All controllers: {}\n more", names.join(", "));
        all_are_named(&help(&names)).unwrap();
        let more = all_are_named(&help(&[&names[..], &["tide-controller"]].concat()));
        assert!(format!("{:#}", more.unwrap_err()).contains("tide-controller"));
        let fewer = all_are_named(&help(&names[1..]));
        assert!(format!("{:#}", fewer.unwrap_err()).contains(names[0]));
    }
}
