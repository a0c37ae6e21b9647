//! A `neap up` with the example farm: the programs of Buildbarn as pods of this machine.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use crate::{process, stopwatch::Stopwatch};

/// The namespace of `examples/farm`.
pub(super) const NAMESPACE: &str = "buildbarn";
/// The components that become ready. `bb_browser` cannot be built from the module proxy.
pub(super) const COMPONENTS: [&str; 4] = [
    "buildbarnstorage/storage",
    "buildbarnscheduler/scheduler",
    "buildbarnworker/linux",
    "buildbarnfrontend/frontend",
];
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long a whole farm may take to follow a change, on a busy machine.
pub(super) const ROLL_OUT_LIMIT: Duration = Duration::from_mins(4);

/// The programs that a run needs.
pub(super) struct Programs {
    pub(super) neap: PathBuf,
    pub(super) kubectl: PathBuf,
    pub(super) bazel: PathBuf,
    /// The table with the programs of Buildbarn.
    pub(super) images: PathBuf,
}

/// A running `neap up`; it is stopped on drop, and its log is printed if a scenario failed.
pub(super) struct Platform {
    neap: PathBuf,
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    folder: TempDir,
    server: Child,
}

impl Drop for Platform {
    fn drop(&mut self) {
        // SIGTERM: it stops its pods itself.
        let id = self.server.id().to_string();
        let _ = Command::new("kill").arg(id).status();
        let _ = self.server.wait();
    }
}

impl Platform {
    /// Starts it with the example farm, and waits until the farm is ready.
    pub(super) fn start(programs: &Programs) -> Result<Self> {
        // Not in /tmp, of which each container has its own.
        let folder = tempfile::tempdir_in("/var/tmp")?;
        // Actions run as a user of their own.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let log = folder.path().join("neap.log");
        let transcript = folder.path().join("neap.out");
        let server = Command::new(&programs.neap)
            .args(["up", "--listen", "127.0.0.1:0", "--images"])
            .arg(&programs.images)
            .stdin(Stdio::null())
            .stdout(File::create(&transcript)?)
            .stderr(File::create(&log)?)
            .spawn()
            .context("cannot start neap up")?;
        let mut platform = Self {
            neap: programs.neap.clone(),
            kubectl: programs.kubectl.clone(),
            kubeconfig: PathBuf::new(),
            folder,
            server,
        };
        until("neap up is ready", Duration::from_mins(1), || {
            let text = fs::read_to_string(&transcript)?;
            // The line about stopping is the last one.
            if !text.contains("\n  stop ") {
                return Ok(None);
            }
            let (_, rest) = text
                .split_once("KUBECONFIG=")
                .context("no kubeconfig in the transcript")?;
            Ok(rest.lines().next().map(PathBuf::from))
        })
        .map(|path| platform.kubeconfig = path)?;
        let example = process::root().join("examples/farm/farm.yaml");
        process::output(platform.kubectl().arg("apply").arg("-f").arg(example))?;
        platform.settled()?;
        Ok(platform)
    }

    /// A folder that pods and this tool share.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the server has logged.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("neap.log")).unwrap_or_default()
    }

    pub(super) fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(["--namespace", NAMESPACE]);
        command
    }

    /// A command of `neap` about this platform.
    pub(super) fn neap(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.neap);
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig);
        command
    }

    /// What a command of `neap` about the farm prints.
    pub(super) fn says(&self, arguments: &[&str]) -> Result<String> {
        process::output(self.neap(arguments).args(["--namespace", NAMESPACE]))
    }

    pub(super) fn get(&self, object: &str) -> Result<Value> {
        let text = process::output(self.kubectl().args(["get", object, "-o", "json"]))?;
        Ok(serde_json::from_str(&text)?)
    }

    pub(super) fn patch(&self, object: &str, change: &Value) -> Result<()> {
        let change = change.to_string();
        let patch = ["patch", object, "--type", "merge", "-p", &change];
        process::output(self.kubectl().args(patch)).map(drop)
    }

    pub(super) fn apply(&self, object: &Value) -> Result<()> {
        let mut child = self
            .kubectl()
            .args(["apply", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        let mut stdin = child.stdin.take().context("kubectl has no input")?;
        stdin.write_all(object.to_string().as_bytes())?;
        drop(stdin);
        if !child.wait()?.success() {
            bail!("kubectl apply failed");
        }
        Ok(())
    }

    /// The pods of an application that are not being deleted, by name and uid.
    pub(super) fn pods(&self, app: &str) -> Result<Vec<(String, String)>> {
        let selector = format!("app={app}");
        let text = process::output(
            self.kubectl()
                .args(["get", "pods", "-l", &selector, "-o", "json"]),
        )?;
        let list: Value = serde_json::from_str(&text)?;
        let pods = list["items"].as_array().into_iter().flatten();
        let pods = pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let field = |pod: &Value, name: &str| pod["metadata"][name].as_str().map(str::to_owned);
        Ok(pods
            .filter_map(|pod| Some((field(pod, "name")?, field(pod, "uid")?)))
            .collect())
    }

    /// The first component that does not have its newest configuration in ready pods, and why.
    fn unsettled(&self) -> Result<Option<String>> {
        for component in COMPONENTS {
            let object = self.get(component)?;
            let status = &object["status"];
            let seen = status["observedGeneration"] == object["metadata"]["generation"];
            if !seen || status["state"] != "Ready" {
                let (state, why) = (&status["state"], condition(&object, "Ready")[1].clone());
                return Ok(Some(format!("{component} is {state}: {why}")));
            }
        }
        Ok(None)
    }

    /// Waits until the whole farm has its newest configuration.
    pub(super) fn settled(&self) -> Result<()> {
        let mut last = String::new();
        // A change reaches one component after the other: all must be ready for some time.
        let mut calm = 0;
        until("the farm is ready", ROLL_OUT_LIMIT, || {
            match self.unsettled()? {
                Some(why) => (calm, last) = (0, why),
                None => calm += 1,
            }
            Ok((calm >= 4).then_some(()))
        })
        .with_context(|| last)
    }
}

/// The reason and the message of a condition.
pub(super) fn condition(object: &Value, name: &str) -> [String; 2] {
    let conditions = object["status"]["conditions"].as_array();
    let mut found = conditions.into_iter().flatten();
    let found = found
        .find(|it| it["type"] == name)
        .cloned()
        .unwrap_or_default();
    ["reason", "message"].map(|field| found[field].as_str().unwrap_or_default().to_owned())
}

/// Asks again and again until there is an answer.
pub(super) fn until<T>(
    what: &str,
    limit: Duration,
    mut ask: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let watch = Stopwatch::start();
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if watch.elapsed() > limit {
            bail!("not after {watch}: {what}");
        }
        thread::park_timeout(POLL_INTERVAL);
    }
}
