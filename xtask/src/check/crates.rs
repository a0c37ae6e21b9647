//! Which crate of ours may depend on which. Dependencies go one way.

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
const IN_PROCESS: &[&str] = &["neap-pocket", "neap-stage", "neap-trial", "neap-oracles"];
/// The same, and the systems outside a cluster that the area calls.
const WITH_EMULATORS: &[&str] = &[
    "neap-pocket",
    "neap-stage",
    "neap-trial",
    "neap-oracles",
    "neap-emulators",
];
/// The same, and what else tests find in their environment.
const WITH_PROGRAMS: &[&str] = &[
    "neap-pocket",
    "neap-stage",
    "neap-trial",
    "neap-oracles",
    "neap-load",
];

/// The binary composes all; `pocket` depends on no other crate of ours; areas meet in Kubernetes objects,
/// never in code.
const ALLOWED: [Row; 24] = [
    ("neap", Everything, &[]),
    (
        "neap-console",
        These(&["neap-kit", "neap-store"]),
        IN_PROCESS,
    ),
    ("neap-world", KIT, IN_PROCESS),
    ("neap-release", KIT, WITH_EMULATORS),
    ("neap-farm", KIT, WITH_EMULATORS),
    (
        "neap-fleet",
        These(&["neap-kit", "neap-store"]),
        WITH_EMULATORS,
    ),
    ("neap-guest", KIT, IN_PROCESS),
    ("neap-idle", KIT, WITH_PROGRAMS),
    (
        "neap-trial",
        These(&["neap-pocket", "neap-kit", "neap-determinism"]),
        &["neap-emulators"],
    ),
    ("neap-determinism", These(&[]), &[]),
    (
        "neap-campaign",
        These(&[
            "neap-trial",
            "neap-determinism",
            "neap-kit",
            "neap-world",
            "neap-release-trial",
            "neap-farm-trial",
        ]),
        &[],
    ),
    (
        "neap-farm-trial",
        These(&[
            "neap-trial",
            "neap-kit",
            "neap-pocket",
            "neap-emulators",
            "neap-world",
            "neap-farm",
        ]),
        &[],
    ),
    (
        "neap-release-trial",
        These(&[
            "neap-trial",
            "neap-kit",
            "neap-pocket",
            "neap-emulators",
            "neap-release",
        ]),
        &[],
    ),
    ("neap-emulators", KIT, WITH_PROGRAMS),
    ("neap-stage", These(&["neap-pocket", "neap-kit"]), &[]),
    ("neap-store", These(&[]), &[]),
    ("neap-kit", These(&[]), IN_PROCESS),
    ("neap-api-conformance", These(&["neap-load"]), &[]),
    (
        "neap-controller-conformance",
        These(&[
            "neap-api-conformance",
            "neap-kit",
            "neap-load",
            "neap-pocket",
            "neap-world",
        ]),
        &[],
    ),
    ("neap-load", KIT, &[]),
    (
        "neap-traffic",
        These(&["neap-idle", "neap-kit", "neap-load", "neap-pocket"]),
        &[],
    ),
    ("neap-pocket", These(&[]), &["neap-oracles"]),
    ("neap-oracles", These(&[]), &[]),
    ("xtask", These(&[]), &[]),
];

pub(super) fn check(project: &Project) -> Findings {
    let ours: Vec<_> = project
        .packages
        .iter()
        .filter(|package| package.ours)
        .collect();
    let mut findings = Findings::default();
    let mut count = 0;
    for package in &ours {
        let is_ours = |name: &str| ours.iter().any(|other| other.name == name);
        for dependency in package.dependencies.iter().filter(|d| is_ours(&d.name)) {
            count += 1;
            if let Err(problem) = allowed(&package.name, &dependency.name, dependency.dev) {
                findings.problems.push(problem);
            }
        }
        if row(&package.name).is_none() {
            findings.problems.push(format!(
                "{} has no row in xtask/src/check/crates.rs",
                package.name
            ));
        }
    }
    findings.detail = format!("{} crates, {count} dependencies", ours.len());
    findings
}

fn row(name: &str) -> Option<&'static Row> {
    ALLOWED.iter().find(|row| row.0 == name)
}

fn allowed(from: &str, to: &str, dev: bool) -> Result<(), String> {
    let Some((_, uses, tests_use)) = row(from) else {
        return Ok(());
    };
    let is_allowed = match uses {
        Everything => true,
        These(names) => names.contains(&to) || (dev && tests_use.contains(&to)),
    };
    let kind = if dev { "tests of " } else { "" };
    is_allowed
        .then_some(())
        .ok_or_else(|| format!("{kind}{from} must not use {to}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_go_one_way() {
        for (from, to, dev, fine) in [
            ("neap", "neap-pocket", false, true),
            ("neap-pocket", "neap-kit", false, false),
            ("neap-pocket", "neap", true, false),
            ("neap-pocket", "neap-oracles", true, true),
            ("neap-pocket", "neap-oracles", false, false),
            ("neap-oracles", "neap-pocket", true, false),
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
