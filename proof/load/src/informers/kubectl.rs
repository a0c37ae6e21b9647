//! kubectl, of the same release as the controllers.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, bail};
use tokio::process::Command;

/// A kubectl that is configured for the server.
#[derive(Debug)]
pub(super) struct Kubectl {
    pub(super) program: PathBuf,
    pub(super) folder: PathBuf,
}

impl Kubectl {
    /// Runs a command line, split at spaces, in the folder of the run. Does not block the thread,
    /// because kubectl may wait for the node's work.
    pub(super) async fn run(&self, line: &str) -> Result<String> {
        let output = Command::new(&self.program)
            .arg0("kubectl")
            .args(line.split_whitespace())
            .current_dir(&self.folder)
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .env("HOME", &self.folder)
            .stdin(Stdio::null())
            .output()
            .await
            .context("cannot run kubectl")?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            bail!("kubectl {line}: {}", stderr.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Writes a file for later commands.
    pub(super) fn file(&self, name: &str, text: &str) -> Result<()> {
        let path: &Path = &self.folder;
        fs::write(path.join(name), text).with_context(|| format!("writing {name}"))
    }
}
