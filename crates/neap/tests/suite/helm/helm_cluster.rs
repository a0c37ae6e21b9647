//! A server, and the helm command configured for it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use http::Method;
use neap_load::{
    client::{Answer, Connection},
    server::Server,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::{command_output::CommandOutput, skip::skip};

/// The commands for the images of the chart: a web server, and a program that exits at once.
const IMAGES: &str = r#"
[[image]]
name = "example.com/harbour"
command = ["NEAP", "sample"]
args = ["serve"]

[[image]]
name = "example.com/done"
command = ["true"]
"#;

/// A running `neap up`, and the working folder of helm.
pub(crate) struct HelmCluster {
    folder: TempDir,
    helm: PathBuf,
    server: Server,
}

impl HelmCluster {
    /// Starts an API server without workloads; skips the test and returns `None` if helm is missing.
    pub(crate) fn start(test: &str) -> Option<Self> {
        Self::launch(test, |neap, _| Server::start(neap, None))
    }

    /// Starts a server that runs workloads.
    pub(crate) fn start_with_workloads(test: &str) -> Option<Self> {
        Self::launch(test, |neap, folder| {
            let images = folder.join("images.toml");
            let neap_itself = neap.to_str().unwrap();
            fs::write(&images, IMAGES.replace("NEAP", neap_itself))?;
            Server::start_whole(neap, Some(&images))
        })
    }

    fn launch(
        test: &str,
        start: impl FnOnce(&Path, &Path) -> anyhow::Result<Server>,
    ) -> Option<Self> {
        let Some(helm) = std::env::var_os("NEAP_HELM") else {
            skip(test, "NEAP_HELM is not set; run cargo xtask test");
            return None;
        };
        let neap = std::env::var_os("NEAP_BIN").unwrap_or(env!("CARGO_BIN_EXE_neap").into());
        let folder = tempfile::tempdir().unwrap();
        let server = start(Path::new(&neap), folder.path()).unwrap();
        Some(Self {
            folder,
            helm: helm.into(),
            server,
        })
    }

    /// Writes a file to the working folder.
    pub(crate) fn file(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// A command from a line of arguments separated by spaces; `CHART` is replaced by the path of the
    /// chart.
    pub(crate) fn command(&self, line: &str) -> Command {
        let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/helm/chart");
        let word = |word| if word == "CHART" { chart } else { word };
        let mut command = Command::new(&self.helm);
        command
            .args(line.split_whitespace().map(word))
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("KUBECONFIG", self.server.kubeconfig())
            .env("HELM_NAMESPACE", "bay")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end, whatever its exit code.
    pub(crate) fn run(&self, line: &str) -> CommandOutput {
        self.begin(line).end()
    }

    /// Runs a command that must succeed; returns its output.
    pub(crate) fn ok(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!(said.code, Some(0), "helm {line}: {said:?}");
        said.stdout
    }

    /// Runs a command that must succeed; returns the JSON that it prints.
    pub(crate) fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("{line} -o json"))).unwrap()
    }

    /// Runs a command that must fail; returns its error output.
    pub(crate) fn refused(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!(said.code, Some(1), "helm {line}: {said:?}");
        said.stderr
    }

    /// Starts a command without waiting for its end.
    pub(crate) fn begin(&self, line: &str) -> HelmCommand {
        let child = self
            .command(line)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        HelmCommand(child.unwrap())
    }

    /// A connection to the server for the test itself.
    pub(crate) async fn connect(&self) -> Connection {
        let client = self.server.client().unwrap();
        client.connect().await.unwrap()
    }

    /// Sends a GET request.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        let mut connection = self.connect().await;
        connection.send(Method::GET, path, "").await.unwrap()
    }

    /// The object at a path, which must exist.
    pub(crate) async fn object(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        answer.json().unwrap()
    }

    /// The numbers and states of a release's revisions, oldest first.
    pub(crate) fn history(&self, release: &str) -> Vec<(u64, String)> {
        let history = self.json(&format!("history {release}"));
        let revisions = history.as_array().unwrap().iter();
        let of = |revision: &Value| {
            let state = revision["status"].as_str()?.to_owned();
            Some((revision["revision"].as_u64()?, state))
        };
        revisions.map(|revision| of(revision).unwrap()).collect()
    }
}

/// A running helm command.
pub(crate) struct HelmCommand(Child);

impl HelmCommand {
    /// Waits for its end.
    pub(crate) fn end(self) -> CommandOutput {
        self.0.wait_with_output().unwrap().into()
    }
}
