//! What we depend on: under which licences, and in how many versions.

use std::collections::{BTreeMap, BTreeSet};

use super::{Findings, Project};
use crate::{spdx, workspace::Package};

/// Licences that may be part of an Apache-2.0 binary.
const ACCEPTED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// Crates that are there in more than one version, and why we put up with it.
const DUPLICATES: [(&str, &str); 14] = [
    (
        "base64",
        "kube-client and pem have moved to 0.23; cel and k8s-openapi have not",
    ),
    (
        "block-buffer",
        "sqlx-postgres has moved to sha2 0.11; sqlx-core has not",
    ),
    (
        "cpufeatures",
        "sqlx-postgres has moved to sha2 0.11; sqlx-core has not",
    ),
    (
        "crypto-common",
        "sqlx-postgres has moved to sha2 0.11; sqlx-core has not",
    ),
    (
        "darling",
        "kube-derive has moved to 0.24; derive_builder, below croner, has not",
    ),
    (
        "darling_core",
        "kube-derive has moved to 0.24; derive_builder, below croner, has not",
    ),
    (
        "darling_macro",
        "kube-derive has moved to 0.24; derive_builder, below croner, has not",
    ),
    (
        "digest",
        "sqlx-postgres has moved to sha2 0.11; sqlx-core has not",
    ),
    (
        "getrandom",
        "tempfile has moved to 0.4; ahash, below cel, has not",
    ),
    (
        "hashbrown",
        "indexmap has moved to 0.17; kube-runtime has not",
    ),
    (
        "sha2",
        "sqlx-postgres has moved to sha2 0.11; sqlx-core has not",
    ),
    (
        "syn",
        "derive macros are moving from 2 to 3; build time only",
    ),
    (
        "synstructure",
        "derive macros are moving from syn 2 to 3; build time only",
    ),
    ("untrusted", "webpki has moved to 0.9; aws-lc-rs has not"),
];

pub(super) fn licences(project: &Project) -> Findings {
    let problems = project.packages.iter().filter(|package| !is_fine(package));
    Findings {
        detail: format!("{} packages", project.packages.len()),
        problems: problems
            .map(|package| {
                let licence = package.licence.as_deref().unwrap_or("no licence named");
                format!("{} {}: {licence}", package.name, package.version)
            })
            .collect(),
        ..Findings::default()
    }
}

fn is_fine(package: &Package) -> bool {
    let accepted = |licence: &str| ACCEPTED.contains(&licence);
    let licence = package.licence.as_deref();
    licence.is_some_and(|licence| spdx::satisfied(licence, &accepted))
}

pub(super) fn duplicates(project: &Project) -> Findings {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &project.packages {
        versions
            .entry(&package.name)
            .or_default()
            .insert(&package.version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let known = |name: &str| DUPLICATES.iter().any(|(known, _)| *known == name);
    let new = versions.iter().filter(|(name, _)| !known(name));
    let mut problems: Vec<_> = new
        .map(|(name, versions)| {
            let versions: Vec<_> = versions.iter().copied().collect();
            format!(
                "{name} in versions {}: agree on one, or give a reason in xtask",
                versions.join(" and ")
            )
        })
        .collect();
    let gone = DUPLICATES
        .iter()
        .filter(|(name, _)| !versions.contains_key(name));
    problems.extend(
        gone.map(|(name, _)| {
            format!("{name} is no longer there twice: remove its reason in xtask")
        }),
    );
    Findings {
        detail: format!("{} allowed, each with a reason", DUPLICATES.len()),
        problems,
        ..Findings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, licence: Option<&str>) -> Package {
        Package {
            name: name.into(),
            version: version.into(),
            licence: licence.map(str::to_owned),
            ours: false,
            registry: true,
            dependencies: Vec::new(),
        }
    }

    #[test]
    fn unknown_and_missing_licences_are_problems() {
        let project = Project {
            packages: vec![
                package("a", "1.0.0", Some("MIT OR GPL-3.0")),
                package("b", "1.0.0", Some("GPL-3.0")),
                package("c", "1.0.0", None),
            ],
            advisories: None,
        };
        let problems = licences(&project).problems;
        assert_eq!(problems, ["b 1.0.0: GPL-3.0", "c 1.0.0: no licence named"]);
    }

    #[test]
    fn new_duplicates_and_stale_reasons_are_problems() {
        let mut packages = vec![package("new", "1.0.0", None), package("new", "2.0.0", None)];
        for (name, _) in &DUPLICATES[1..] {
            packages.extend([package(name, "1.0.0", None), package(name, "2.0.0", None)]);
        }
        let project = Project {
            packages,
            advisories: None,
        };
        let problems = duplicates(&project).problems;
        assert_eq!(problems.len(), 2);
        assert!(problems[0].starts_with("new in versions 1.0.0 and 2.0.0"));
        assert!(problems[1].starts_with(DUPLICATES[0].0));
    }
}
