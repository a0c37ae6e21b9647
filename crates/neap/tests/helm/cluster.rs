//! A server and a Helm that knows it, in a folder of their own.

use std::{
    fs::{self, File},
    io::Write,
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

/// What the chart's images stand for where workloads run: a web server, and something that does its
/// work at once.
const IMAGES: &str = r#"
[[image]]
name = "example.com/harbour"
command = ["NEAP", "sample"]
args = ["serve"]

[[image]]
name = "example.com/done"
command = ["true"]
"#;

/// A running `neap up` and the folder that Helm works in.
pub(crate) struct Cluster {
    folder: TempDir,
    helm: PathBuf,
    server: Server,
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Cluster {
    /// Starts a server on which nothing runs; `None`, and a word about it, if there is no Helm.
    pub(crate) fn start(test: &str) -> Option<Self> {
        Self::launch(test, |neap, _| Server::start(neap, None))
    }

    /// Starts one on which workloads run.
    pub(crate) fn start_world(test: &str) -> Option<Self> {
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

    /// Writes a file that later commands know by its name.
    pub(crate) fn file(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// A command line whose words are parted by spaces; `CHART` stands for our chart.
    pub(crate) fn command(&self, line: &str) -> Command {
        let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/helm/chart");
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

    /// Runs a command, however it ends.
    pub(crate) fn run(&self, line: &str) -> Said {
        self.begin(line).end()
    }

    /// Runs a command that succeeds; its output.
    pub(crate) fn ok(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!(said.code, Some(0), "helm {line}: {said:?}");
        said.stdout
    }

    /// Runs a command that succeeds; the JSON that it prints.
    pub(crate) fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("{line} -o json"))).unwrap()
    }

    /// Runs a command that fails and says why.
    pub(crate) fn refused(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!(said.code, Some(1), "helm {line}: {said:?}");
        said.stderr
    }

    /// Starts a command that waits for something.
    pub(crate) fn begin(&self, line: &str) -> Running {
        let child = self
            .command(line)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Running(child.unwrap())
    }

    /// A connection for the hands of the test.
    pub(crate) async fn connect(&self) -> Connection {
        let client = self.server.client().unwrap();
        client.connect().await.unwrap()
    }

    /// What is at a path.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        let mut connection = self.connect().await;
        connection.send(Method::GET, path, "").await.unwrap()
    }

    /// The object at a path, which is there.
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

/// A command under way.
pub(crate) struct Running(Child);

impl Running {
    /// Waits for its end.
    pub(crate) fn end(self) -> Said {
        let output = self.0.wait_with_output().unwrap();
        Said {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Says that a test did not run, so that it is not counted as passed.
fn skip(test: &str, why: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
    assert!(!in_ci, "{test} did not run: {why}");
    if let Some(path) = std::env::var_os("NEAP_SKIPS") {
        let mut file = File::options().append(true).open(path).unwrap();
        // One write, so that lines of tests that run at the same time do not mix.
        file.write_all(format!("SKIPPED {test}: {why}\n").as_bytes())
            .unwrap();
    }
}
