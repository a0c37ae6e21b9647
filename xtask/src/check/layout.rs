//! The layout of source files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{Findings, Project};
use crate::process;

/// Lines above which a file should be two. Longer tests are reported as notes only.
const CEILING: usize = 500;

pub(super) fn no_mod_rs(_: &Project) -> Result<Findings> {
    let files = sources()?;
    let named_mod = files.iter().filter(|path| path.ends_with("mod.rs"));
    Ok(Findings {
        detail: format!("{} source files", files.len()),
        problems: named_mod
            .map(|path| format!("{}: name it after its folder", path.display()))
            .collect(),
        ..Findings::default()
    })
}

pub(super) fn lengths(_: &Project) -> Result<Findings> {
    let mut findings = Findings::default();
    let mut longest = (0, PathBuf::new());
    for path in sources()? {
        let text = fs::read_to_string(process::root().join(&path))?;
        if is_generated(&text) {
            continue;
        }
        let lines = text.lines().count();
        if lines > CEILING {
            let line = format!("{}: {lines} lines, ceiling {CEILING}", path.display());
            if is_test(&path) {
                findings.notes.push(line);
            } else {
                findings.problems.push(line);
            }
        }
        longest = longest.max((lines, path));
    }
    findings.detail = format!("longest {} ({} lines)", longest.1.display(), longest.0);
    Ok(findings)
}

fn is_generated(text: &str) -> bool {
    text.lines().take(3).any(|line| line.contains("@generated"))
}

fn is_test(path: &Path) -> bool {
    path.components()
        .any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
}

/// Every Rust file of ours, relative to the workspace.
fn sources() -> Result<Vec<PathBuf>> {
    let folders = ["crates", "proof", "xtask"].map(sources_in);
    let folders: Vec<_> = folders.into_iter().collect::<Result<_>>()?;
    Ok(folders.concat())
}

/// Every Rust file below a folder of the workspace, relative to the workspace.
pub(super) fn sources_in(folder: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    collect(&process::root().join(folder), &mut files)?;
    let root = process::root();
    Ok(files
        .iter()
        .filter_map(|path| path.strip_prefix(root).ok().map(Path::to_owned))
        .collect())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            if !path.ends_with("target") {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_sources_are_found() {
        let files = sources().unwrap();
        assert!(files.contains(&PathBuf::from("xtask/src/check/layout.rs")));
        assert!(files.contains(&PathBuf::from("crates/neap/src/main.rs")));
    }

    #[test]
    fn tests_are_known_by_their_place() {
        for (path, test) in [
            ("crates/a/src/b/tests.rs", true),
            ("crates/a/tests/b.rs", true),
            ("crates/a/src/contests.rs", false),
        ] {
            assert_eq!(is_test(Path::new(path)), test, "{path}");
        }
    }
}
