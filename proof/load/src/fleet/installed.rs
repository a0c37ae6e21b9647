//! Clusters in `neap up`: how soon the first one is there, and the memory that each of them takes.

use std::{
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::Method;
use tempfile::TempDir;

use super::{FleetPrograms, OURS, ProgramFigures, arm, takeover};
use crate::{client::Connection, measure::milliseconds, server::Server, stopwatch::Stopwatch};

/// What a user applies to each cluster.
const APPLIED: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: applied
  namespace: default
data:
  by: the bench
";

/// The time of the first and of the slowest later creation, and the growth of memory between `few` and
/// `all` clusters, after `kubectl get` and `apply` on each.
pub async fn installed(
    programs: &FleetPrograms,
    few: usize,
    all: usize,
) -> Result<Vec<ProgramFigures>> {
    let kubectl = programs.kubectl.clone().context("no kubectl")?;
    let neap = programs.neap.clone();
    let start = move || Server::start_whole_with(&neap, &["--fleet-settle", "0s"]);
    let server = tokio::task::spawn_blocking(start).await??;
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("applied.yaml"), APPLIED)?;
    let mut users = Users {
        api: takeover::provider(&server).await?.connect().await?,
        kubectl,
        folder,
    };
    let first = users.create(1).await?;
    let slowest = users.create_and_use(1..=few, true).await?;
    let before = server.resident_bytes()?;
    users.create_and_use(few + 1..=all, false).await?;
    let after = server.resident_bytes()?;
    let figures = vec![
        ("first", first),
        ("slowest", slowest),
        ("memory of few", before as f64),
        (
            "memory per cluster",
            after.saturating_sub(before) as f64 / (all - few) as f64,
        ),
    ];
    Ok(vec![(OURS, figures)])
}

/// What users do.
struct Users {
    api: Connection,
    kubectl: PathBuf,
    folder: TempDir,
}

impl Users {
    /// From the request for a cluster to its end, in milliseconds.
    async fn create(&mut self, number: usize) -> Result<f64> {
        let watch = Stopwatch::start();
        let operation = arm::create(&mut self.api, &name(number), number).await?;
        arm::succeeded(&mut self.api, &operation).await?;
        Ok(milliseconds(watch.elapsed()))
    }

    /// Creates clusters, except the first if it is there, and uses all of them. Returns the longest time
    /// of a creation.
    async fn create_and_use(
        &mut self,
        numbers: RangeInclusive<usize>,
        has_first: bool,
    ) -> Result<f64> {
        let mut slowest = 0_f64;
        for number in numbers.clone().skip(usize::from(has_first)) {
            slowest = slowest.max(self.create(number).await?);
        }
        for number in numbers {
            self.work_with(number).await?;
        }
        Ok(slowest)
    }

    async fn work_with(&mut self, number: usize) -> Result<()> {
        let path = arm::cluster_path(&name(number), "/listAdminCredentials");
        let answer = self.api.send(Method::POST, &path, "").await?.success()?;
        let kubeconfig = answer["kubeconfig"].as_str().context("no kubeconfig")?;
        let file = self.folder.path().join(name(number));
        fs::write(&file, STANDARD.decode(kubeconfig)?)?;
        let kubectl = |arguments: &[&str]| {
            let mut command = Command::new(&self.kubectl);
            command.arg("--kubeconfig").arg(&file).args(arguments);
            command.env("HOME", self.folder.path());
            command.current_dir(self.folder.path());
            ran(command, &file)
        };
        kubectl(&["get", "nodes"]).await?;
        kubectl(&["apply", "-f", "applied.yaml"]).await
    }
}

async fn ran(mut command: Command, cluster: &Path) -> Result<()> {
    let output = tokio::task::spawn_blocking(move || command.output()).await?;
    let output = output.context("cannot run kubectl")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {error}", cluster.display());
    Ok(())
}

fn name(number: usize) -> String {
    format!("cluster{number}")
}
