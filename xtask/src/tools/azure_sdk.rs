//! The Python SDK with which customers of Azure drive a resource provider, in the releases that the tests
//! are written for.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::python;
use crate::process;

const PACKAGE: &str = "azure-mgmt-redhatopenshift";
/// Each speaks another version of the API.
const RELEASES: [&str; 2] = ["4.0.0", "2.0.0"];

/// A folder with one folder for each release, which is a search path of Python: the one that
/// `NEAP_AZURE_SDK` names, or the one that was installed here before, or one that is installed now.
pub(crate) fn azure_sdk() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("NEAP_AZURE_SDK") {
        return Ok(path.into());
    }
    let folder = process::root().join("target/tools/azure-sdk");
    for release in RELEASES {
        let installed = folder.join(release);
        if is_usable(&installed).is_ok() {
            continue;
        }
        println!(
            "   installing {PACKAGE} {release} from the Python package index; this happens once"
        );
        // What an interrupted installation left would be mixed with the new one.
        if installed.exists() {
            fs::remove_dir_all(&installed)?;
        }
        python::install_with_dependencies(&installed, &format!("{PACKAGE}=={release}"))?;
        is_usable(&installed)?;
    }
    Ok(folder)
}

/// The releases, for the line that says what was found.
pub(crate) fn releases() -> String {
    RELEASES.join(", ")
}

fn is_usable(folder: &Path) -> Result<()> {
    let import = "import azure.mgmt.redhatopenshift, azure.core.credentials";
    let mut python = Command::new("python3");
    python.args(["-c", import]).env("PYTHONPATH", folder);
    process::output(&mut python)
        .map(drop)
        .with_context(|| format!("{PACKAGE} in {} cannot be used", folder.display()))
}
