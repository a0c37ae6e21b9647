//! Versions that their authors have withdrawn from the registry.
//!
//! The registry's index says which; cargo keeps the part of it that we use. Cargo is asked to
//! look for updates first, because that is what brings its copy up to date.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Findings, Project};
use crate::{process, workspace::Package};

/// What the index says of a version.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Fine,
    Yanked,
    /// The crate or the version is not in cargo's copy.
    Unknown,
}

pub(super) fn check(project: &Project) -> Result<Findings> {
    let mut findings = Findings::default();
    if let Err(error) = process::output(process::cargo().args(["update", "--dry-run", "--quiet"])) {
        let line = format!("{error:#}").replace('\n', " ");
        findings.notes.push(format!(
            "the registry was not reached, so cargo's last copy of its index was read: {line}"
        ));
    }
    let indexes = indexes()?;
    let packages: Vec<_> = project.packages.iter().filter(|p| p.registry).collect();
    for package in &packages {
        let name = format!("{} {}", package.name, package.version);
        match ask(&indexes, package) {
            Answer::Fine => {}
            Answer::Yanked => findings.problems.push(format!(
                "{name} was yanked: cargo update -p {}",
                package.name
            )),
            Answer::Unknown => findings.notes.push(format!(
                "{name}: cannot be determined, it is not in cargo's copy of the index"
            )),
        }
    }
    findings.detail = format!("{} packages", packages.len());
    Ok(findings)
}

/// Cargo's copies of registry indexes.
fn indexes() -> Result<Vec<PathBuf>> {
    let folder = cargo_home()?.join("registry/index");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    entries
        .map(|entry| Ok(entry?.path().join(".cache")))
        .collect()
}

pub(super) fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    let home = std::env::home_dir().context("neither CARGO_HOME nor HOME is set")?;
    Ok(home.join(".cargo"))
}

fn ask(indexes: &[PathBuf], package: &Package) -> Answer {
    let path = index_path(&package.name);
    let files = indexes
        .iter()
        .filter_map(|index| fs::read(index.join(&path)).ok());
    for file in files {
        match look_up(&file, &package.version) {
            Answer::Unknown => {}
            answer => return answer,
        }
    }
    Answer::Unknown
}

/// The place of a crate in an index.
fn index_path(name: &str) -> PathBuf {
    let name = name.to_lowercase();
    let folder = match name.len() {
        1 => Path::new("1").to_owned(),
        2 => Path::new("2").to_owned(),
        3 => Path::new("3").join(&name[..1]),
        _ => Path::new(&name[..2]).join(&name[2..4]),
    };
    folder.join(name)
}

/// The file is a header and then, for each version, its number and its JSON, all ended by zeros.
fn look_up(file: &[u8], version: &str) -> Answer {
    let entries = file
        .split(|&byte| byte == 0)
        .filter(|part| part.starts_with(b"{"));
    for entry in entries {
        let Ok(entry) = serde_json::from_slice::<Value>(entry) else {
            continue;
        };
        if entry["vers"] == version {
            return match entry["yanked"].as_bool() {
                Some(true) => Answer::Yanked,
                Some(false) => Answer::Fine,
                None => Answer::Unknown,
            };
        }
    }
    Answer::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_says_which_versions_are_yanked() {
        let file = [
            &b"\x03\x02\0\0\0etag"[..],
            b"1.0.0",
            br#"{"vers":"1.0.0","yanked":true}"#,
            b"1.0.1",
            br#"{"vers":"1.0.1","yanked":false}"#,
            b"",
        ]
        .join(&0);
        assert_eq!(look_up(&file, "1.0.0"), Answer::Yanked);
        assert_eq!(look_up(&file, "1.0.1"), Answer::Fine);
        assert_eq!(look_up(&file, "1.0.2"), Answer::Unknown);
    }

    #[test]
    fn crates_have_their_place_by_length() {
        for (name, path) in [
            ("a", "1/a"),
            ("cc", "2/cc"),
            ("cel", "3/c/cel"),
            ("Serde", "se/rd/serde"),
        ] {
            assert_eq!(index_path(name), Path::new(path));
        }
    }
}
