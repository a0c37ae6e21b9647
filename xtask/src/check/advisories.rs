//! Known vulnerabilities, from a copy of the RustSec advisory database.
//!
//! An advisory is a Markdown file that begins with a block of TOML.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use semver::{Version, VersionReq};
use toml::{Table, Value};

use super::{Findings, Project, yanked::cargo_home};
use crate::workspace::Package;

/// Advisories that do not concern us, and why.
const IGNORED: [(&str, &str); 0] = [];

pub(super) fn check(project: &Project) -> Result<Findings> {
    let Some(database) = database(project.advisories.as_deref())? else {
        return Ok(Findings {
            notes: vec!["not checked: no database; name one with --advisories DIR, or put it in advisory-db in the cargo home".into()],
            ..Findings::default()
        });
    };
    let mut findings = Findings::default();
    let mut read = 0;
    for package in project.packages.iter().filter(|package| package.registry) {
        let folder = database.join("crates").join(&package.name);
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            let text = fs::read_to_string(&path)?;
            let advisory = Advisory::parse(&text).with_context(|| path.display().to_string())?;
            read += 1;
            advisory.judge(package, &mut findings)?;
        }
    }
    findings.detail = format!("{read} advisories of crates we use");
    Ok(findings)
}

fn database(named: Option<&Path>) -> Result<Option<PathBuf>> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => cargo_home()?.join("advisory-db"),
    };
    let there = path.join("crates").is_dir();
    if named.is_some() && !there {
        anyhow::bail!("{} holds no advisory database", path.display());
    }
    Ok(there.then_some(path))
}

/// One advisory.
#[derive(Debug)]
struct Advisory {
    id: String,
    /// `unmaintained`, `unsound` or `notice`: worth knowing, but no vulnerability.
    informational: Option<String>,
    withdrawn: bool,
    /// Versions that it does not concern.
    unaffected: Vec<VersionReq>,
}

impl Advisory {
    fn parse(text: &str) -> Result<Self> {
        let (_, rest) = text.split_once("```toml").context("no TOML block")?;
        let (block, _) = rest.split_once("```").context("TOML block does not end")?;
        let table: Table = block.parse()?;
        let advisory = table.get("advisory").context("no [advisory]")?;
        let field = |name: &str| {
            advisory
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let mut unaffected = Vec::new();
        for list in ["patched", "unaffected"] {
            let versions = table
                .get("versions")
                .and_then(|versions| versions.get(list));
            for version in versions.and_then(Value::as_array).into_iter().flatten() {
                let version = version.as_str().context("a version is no text")?;
                unaffected.push(VersionReq::parse(version)?);
            }
        }
        Ok(Self {
            id: field("id").context("no id")?,
            informational: field("informational"),
            withdrawn: advisory.get("withdrawn").is_some(),
            unaffected,
        })
    }

    fn judge(&self, package: &Package, findings: &mut Findings) -> Result<()> {
        let version = Version::parse(&package.version)?;
        let spared = self.unaffected.iter().any(|range| range.matches(&version));
        let ignored = IGNORED.iter().any(|(id, _)| *id == self.id);
        if spared || ignored || self.withdrawn {
            return Ok(());
        }
        let line = format!("{} {}: {}", package.name, package.version, self.id);
        match &self.informational {
            Some(kind) => findings.notes.push(format!("{line} ({kind})")),
            None => findings.problems.push(line),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "```toml\n[advisory]\nid = \"RUSTSEC-2026-0001\"\npackage = \"leaky\"\n\n[versions]\npatched = [\">= 1.2.3\"]\nunaffected = [\"< 1.0.0\"]\n```\n\n# It leaks\n";

    fn judged(text: &str, version: &str) -> (usize, usize) {
        let package = Package {
            name: "leaky".into(),
            version: version.into(),
            licence: None,
            ours: false,
            registry: true,
            dependencies: Vec::new(),
        };
        let mut findings = Findings::default();
        let advisory = Advisory::parse(text).unwrap();
        advisory.judge(&package, &mut findings).unwrap();
        (findings.problems.len(), findings.notes.len())
    }

    #[test]
    fn only_affected_versions_are_problems() {
        for (version, problems) in [("0.9.0", 0), ("1.0.0", 1), ("1.2.2", 1), ("1.2.3", 0)] {
            assert_eq!(judged(TEXT, version), (problems, 0), "{version}");
        }
    }

    #[test]
    fn informational_advisory_is_a_note_and_a_withdrawn_one_nothing() {
        let informational =
            TEXT.replace("[versions]", "informational = \"unmaintained\"\n[versions]");
        assert_eq!(judged(&informational, "1.0.0"), (0, 1));
        let withdrawn = TEXT.replace("[versions]", "withdrawn = \"2026-02-01\"\n[versions]");
        assert_eq!(judged(&withdrawn, "1.0.0"), (0, 0));
    }
}
