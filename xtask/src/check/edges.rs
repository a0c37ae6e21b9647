//! Which crate of ours may use which. Arrows point down only.

use super::{Findings, Project};

/// A crate, what it may use, and what its tests may use besides.
type Row = (&'static str, Allowed, &'static [&'static str]);

#[derive(Debug, Clone, Copy)]
enum Allowed {
    Everything,
    These(&'static [&'static str]),
}

use Allowed::{Everything, These};

const KIT: Allowed = These(&["neap-kit"]);
const IN_PROCESS: &[&str] = &["neap-pocket", "neap-trial", "neap-oracle"];
/// The same, and what else tests find in their environment.
const WITH_PROGRAMS: &[&str] = &["neap-pocket", "neap-trial", "neap-oracle", "neap-load"];

/// The binary composes all; `pocket` knows nobody; areas meet in Kubernetes objects, never in code.
const ARROWS: [Row; 20] = [
    ("neap", Everything, &[]),
    (
        "neap-console",
        These(&["neap-kit", "neap-store"]),
        IN_PROCESS,
    ),
    (
        "neap-world",
        These(&["neap-kit", "neap-store", "neap-pocket"]),
        IN_PROCESS,
    ),
    ("neap-release", KIT, IN_PROCESS),
    ("neap-farm", KIT, IN_PROCESS),
    ("neap-fleet", These(&["neap-kit", "neap-store"]), IN_PROCESS),
    ("neap-guest", KIT, IN_PROCESS),
    ("neap-idle", KIT, WITH_PROGRAMS),
    (
        "neap-trial",
        These(&["neap-pocket", "neap-kit", "neap-replay"]),
        &[],
    ),
    ("neap-replay", These(&[]), &[]),
    (
        "neap-faults",
        These(&["neap-trial", "neap-replay", "neap-kit", "neap-world"]),
        &[],
    ),
    ("neap-store", These(&[]), &[]),
    ("neap-kit", These(&[]), IN_PROCESS),
    ("neap-differential", These(&["neap-load"]), &[]),
    (
        "neap-parity",
        These(&[
            "neap-differential",
            "neap-kit",
            "neap-load",
            "neap-pocket",
            "neap-world",
        ]),
        &[],
    ),
    ("neap-load", KIT, &[]),
    (
        "neap-loss",
        These(&["neap-idle", "neap-kit", "neap-load", "neap-pocket"]),
        &[],
    ),
    ("neap-pocket", These(&[]), &["neap-oracle"]),
    ("neap-oracle", These(&[]), &[]),
    ("xtask", These(&[]), &[]),
];

pub(super) fn check(project: &Project) -> Findings {
    let ours: Vec<_> = project
        .packages
        .iter()
        .filter(|package| package.ours)
        .collect();
    let mut findings = Findings::default();
    let mut arrows = 0;
    for package in &ours {
        let ours_too = |name: &str| ours.iter().any(|other| other.name == name);
        for dependency in package.dependencies.iter().filter(|d| ours_too(&d.name)) {
            arrows += 1;
            if let Err(problem) = allowed(&package.name, &dependency.name, dependency.dev) {
                findings.problems.push(problem);
            }
        }
        if row(&package.name).is_none() {
            findings.problems.push(format!(
                "{} has no row in xtask/src/check/edges.rs",
                package.name
            ));
        }
    }
    findings.detail = format!("{} crates, {arrows} arrows", ours.len());
    findings
}

fn row(name: &str) -> Option<&'static Row> {
    ARROWS.iter().find(|row| row.0 == name)
}

fn allowed(from: &str, to: &str, dev: bool) -> Result<(), String> {
    let Some((_, uses, tests_use)) = row(from) else {
        return Ok(());
    };
    let fine = match uses {
        Everything => true,
        These(names) => names.contains(&to) || (dev && tests_use.contains(&to)),
    };
    let kind = if dev { "tests of " } else { "" };
    fine.then_some(())
        .ok_or_else(|| format!("{kind}{from} must not use {to}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_point_down_only() {
        for (from, to, dev, fine) in [
            ("neap", "neap-pocket", false, true),
            ("neap-pocket", "neap-kit", false, false),
            ("neap-pocket", "neap", true, false),
            ("neap-pocket", "neap-oracle", true, true),
            ("neap-pocket", "neap-oracle", false, false),
            ("neap-oracle", "neap-pocket", true, false),
            ("neap-fleet", "neap-store", false, true),
            ("neap-release", "neap-store", false, false),
            ("neap-release", "neap-farm", false, false),
            ("neap-kit", "neap-trial", true, true),
            ("neap-kit", "neap-trial", false, false),
        ] {
            assert_eq!(allowed(from, to, dev).is_ok(), fine, "{from} -> {to}");
        }
    }
}
