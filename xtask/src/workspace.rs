//! The workspace and everything it depends on, as cargo sees them.

use std::collections::HashSet;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// Duplicates and licences are judged for the platform that releases are built on.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// A package that is really used.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    /// Part of this workspace.
    pub(crate) ours: bool,
    /// Comes from the registry, rather than from a folder or a repository.
    pub(crate) registry: bool,
    /// What it depends on by name; for packages of ours this is what its manifest says.
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency of a package.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Only tests of the package use it.
    pub(crate) dev: bool,
}

/// Reads the packages from cargo.
pub(crate) fn packages() -> Result<Vec<Package>> {
    let text = process::output(process::cargo().args([
        "metadata",
        "--format-version=1",
        "--locked",
        "--filter-platform",
        PLATFORM,
    ]))?;
    let packages = parse(&serde_json::from_str(&text)?);
    let mut packages = packages.context("cargo metadata is not as expected")?;
    let built = built()?;
    packages.retain(|package| built.contains(&(package.name.clone(), package.version.clone())));
    Ok(packages)
}

/// Name and version of what is really built: the metadata also lists optional dependencies that
/// no feature of ours turns on.
fn built() -> Result<HashSet<(String, String)>> {
    let text = process::output(process::cargo().args([
        "tree",
        "--workspace",
        "--locked",
        "--edges=all",
        "--prefix=none",
        "--format={p}",
        "--target",
        PLATFORM,
    ]))?;
    Ok(text.lines().filter_map(name_and_version).collect())
}

/// Of a line such as `name v1.2.3 (proc-macro)`; lines about features are no packages.
fn name_and_version(line: &str) -> Option<(String, String)> {
    let mut words = line.split_whitespace();
    let (name, version) = (words.next()?, words.next()?);
    Some((name.to_owned(), version.strip_prefix('v')?.to_owned()))
}

fn parse(metadata: &Value) -> Option<Vec<Package>> {
    let ids = |pointer: &str, key: Option<&str>| -> Option<HashSet<String>> {
        let list = metadata.pointer(pointer)?.as_array()?;
        let id = |item: &Value| Some(key.map_or(item, |key| &item[key]).as_str()?.to_owned());
        list.iter().map(id).collect()
    };
    let used = ids("/resolve/nodes", Some("id"))?;
    let ours = ids("/workspace_members", None)?;
    let packages = metadata["packages"].as_array()?.iter();
    let packages =
        packages.filter(|package| package["id"].as_str().is_some_and(|id| used.contains(id)));
    packages
        .map(|package| parse_package(package, &ours))
        .collect()
}

fn parse_package(package: &Value, ours: &HashSet<String>) -> Option<Package> {
    let text = |key: &str| package[key].as_str().map(str::to_owned);
    let dependencies = package["dependencies"].as_array()?.iter();
    let dependencies = dependencies.map(|dependency| {
        Some(Dependency {
            name: dependency["name"].as_str()?.to_owned(),
            dev: dependency["kind"] == "dev",
        })
    });
    Some(Package {
        name: text("name")?,
        version: text("version")?,
        licence: text("license"),
        ours: ours.contains(package["id"].as_str()?),
        registry: text("source").is_some_and(|source| !source.starts_with("git+")),
        dependencies: dependencies.collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_told_from_features() {
        let some = |name: &str, version: &str| Some((name.to_owned(), version.to_owned()));
        for (line, expected) in [
            ("syn v2.0.1", some("syn", "2.0.1")),
            (
                "serde_derive v1.0.2 (proc-macro) (*)",
                some("serde_derive", "1.0.2"),
            ),
            ("syn feature \"default\"", None),
            ("", None),
        ] {
            assert_eq!(name_and_version(line), expected, "{line}");
        }
    }
}
