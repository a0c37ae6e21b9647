//! `cargo xtask prow`: the real controller of Prow runs the ProwJobs of `examples/release` on `neap up`.

mod program;

use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use self::program::Prow;
use crate::{process, stopwatch::Stopwatch, tools};

/// The namespace of `examples/release`.
const NAMESPACE: &str = "releases";
/// The build cluster of its jobs. Prow knows build clusters as contexts of its kubeconfig.
const BUILD_CLUSTER: &str = "build01";
/// The address of the registry in the example.
const EXAMPLE_REGISTRY: &str = "127.1.0.5:5000";
const POLL_INTERVAL: Duration = Duration::from_millis(250);
const START_LIMIT: Duration = Duration::from_mins(1);
/// How long a release may take to its verdict, on a busy machine.
const VERDICT_LIMIT: Duration = Duration::from_mins(4);

/// Plays the life of two releases; false if one of them does not get the verdict that it should.
pub(crate) fn run() -> Result<bool> {
    let prow = program::prow()?;
    let build = [
        "build",
        "--locked",
        "--quiet",
        "--package",
        "neap",
        "--bin",
        "neap",
    ];
    process::run(process::cargo().args(build))?;
    let neap = process::root().join("target/debug/neap");
    let lab = Lab::start(&prow, &neap, &tools::kubectl()?.path)?;
    let played = play(&lab);
    match &played {
        Ok(()) => {}
        Err(error) => println!(
            " ✗ {error:#}\nthe log of neap up:\n{}\nthe log of Prow:\n{}",
            lab.read("neap.log"),
            lab.read("prow.log")
        ),
    }
    Ok(played.is_ok())
}

fn play(lab: &Lab) -> Result<()> {
    let watch = Stopwatch::start();
    let accepted = lab.release_with("PayloadAccepted")?;
    let runs = lab.runs(&accepted)?;
    ensure!(runs.len() == 2, "{accepted} has the runs {runs:?}");
    for run in &runs {
        ensure!(run.state == "success", "{run:?}");
        // Prow has given it a pod and a number.
        ensure!(!run.pod.is_empty() && !run.build.is_empty(), "{run:?}");
    }
    println!(" ✓ {accepted} is accepted by the pods of Prow ({watch})");
    lab.agrees(&accepted, "Accepted")?;

    let watch = Stopwatch::start();
    process::output(&mut lab.neap(&["demo", "reject"]))?;
    let rejected = lab.release_with("PayloadRejected")?;
    let runs = lab.runs(&rejected)?;
    let failed: Vec<_> = runs.iter().filter(|run| run.state == "failure").collect();
    ensure!(
        failed.len() == 1 && failed[0].name.ends_with("-web"),
        "{rejected} has the runs {runs:?}"
    );
    println!(" ✓ {rejected} is rejected by a pod that exits with 1 ({watch})");
    lab.agrees(&rejected, "Rejected")?;
    let text = process::output(&mut lab.kubectl(&["get", "imagestream", "release", "-o", "json"]))?;
    let target: Value = serde_json::from_str(&text)?;
    let tags = target["spec"]["tags"].as_array().into_iter().flatten();
    let published = tags.into_iter().find(|tag| tag["name"] == "4.21");
    let published = published.context("4.21 is not published")?;
    ensure!(published["from"]["name"] == *accepted, "{published}");
    println!(" ✓ 4.21 stays at {accepted}");
    Ok(())
}

/// A ProwJob as Prow reports it.
#[derive(Debug)]
struct Run {
    name: String,
    state: String,
    pod: String,
    build: String,
}

/// A `neap up` without its own Prow, and the real one beside it. Both are stopped on drop.
struct Lab {
    neap: PathBuf,
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    folder: TempDir,
    processes: Vec<Child>,
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Prow first: it must not start pods again that the server stops.
        for process in self.processes.iter_mut().rev() {
            let _ = Command::new("kill").arg(process.id().to_string()).status();
            let _ = process.wait();
        }
    }
}

impl Lab {
    fn start(prow: &Prow, neap: &Path, kubectl: &Path) -> Result<Self> {
        // Not in /tmp, of which each container has its own.
        let folder = tempfile::tempdir_in("/var/tmp")?;
        let server = Command::new(neap)
            .args(["up", "--listen", "127.0.0.1:0", "--without-prow"])
            .stdin(Stdio::null())
            .stdout(File::create(folder.path().join("neap.out"))?)
            .stderr(File::create(folder.path().join("neap.log"))?)
            .spawn()
            .context("cannot start neap up")?;
        let mut lab = Self {
            neap: neap.to_owned(),
            kubectl: kubectl.to_owned(),
            kubeconfig: PathBuf::new(),
            folder,
            processes: vec![server],
        };
        let ready = until("neap up is ready", START_LIMIT, || {
            let text = lab.read("neap.out");
            // The line about stopping is the last one.
            let is_whole = text.contains("\n  stop ");
            Ok(is_whole.then_some(text))
        })?;
        let after = |key: &str| {
            let (_, rest) = ready.split_once(key)?;
            rest.split_whitespace().next().map(str::to_owned)
        };
        let kubeconfig = after("KUBECONFIG=").context("no kubeconfig in the transcript")?;
        let (_, registry) = ready.split_once(" registry ").context("no registry")?;
        let (_, registry) = registry.split_once("http://").context("no registry")?;
        let registry = registry.split_whitespace().next().context("no registry")?;
        lab.kubeconfig = kubeconfig.into();
        lab.start_prow(prow)?;
        let example = process::root().join("examples/release/release.yaml");
        let example = fs::read_to_string(example)?.replace(EXAMPLE_REGISTRY, registry);
        let file = lab.folder.path().join("release.yaml");
        fs::write(&file, example)?;
        process::output(lab.kubectl(&["apply", "-f"]).arg(&file))?;
        Ok(lab)
    }

    fn start_prow(&mut self, prow: &Prow) -> Result<()> {
        // Too large for what a client-side apply notes about it.
        process::output(self.kubectl(&["create", "-f"]).arg(&prow.definition))?;
        let folder = self.folder.path().to_owned();
        let config = folder.join("prow.yaml");
        fs::write(
            &config,
            format!("prowjob_namespace: {NAMESPACE}\npod_namespace: {NAMESPACE}\n"),
        )?;
        let kubeconfig = folder.join("prow.kubeconfig");
        fs::copy(&self.kubeconfig, &kubeconfig)?;
        let mut view = Command::new(&self.kubectl);
        view.arg("--kubeconfig").arg(&kubeconfig);
        let text = process::output(view.args(["config", "view", "--minify", "-o", "json"]))?;
        let view: Value = serde_json::from_str(&text)?;
        let context = &view["contexts"][0]["context"];
        let mut set = Command::new(&self.kubectl);
        set.arg("--kubeconfig").arg(&kubeconfig);
        set.args(["config", "set-context", BUILD_CLUSTER]);
        for part in ["cluster", "user"] {
            let name = context[part].as_str().context("no current context")?;
            set.arg(format!("--{part}={name}"));
        }
        process::output(&mut set)?;
        let mut command = Command::new(&prow.program);
        command
            .arg(format!("--config-path={}", config.display()))
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(["--dry-run=false", "--enable-controller=plank"]);
        for port in ["health", "metrics", "pprof"] {
            command.arg(format!("--{port}-port={}", free_port()?));
        }
        let process = command
            // It looks for the cloud that it runs in.
            .env("NO_GCE_CHECK", "true")
            .env("GCE_METADATA_HOST", "127.0.0.1:1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.join("prow.log"))?)
            .spawn()
            .context("cannot start Prow")?;
        self.processes.push(process);
        Ok(())
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.path().join(file)).unwrap_or_default()
    }

    fn kubectl(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(["--namespace", NAMESPACE])
            .args(arguments);
        command
    }

    fn neap(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.neap);
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig);
        command
    }

    /// Waits for a release whose condition is true; its name.
    fn release_with(&self, condition: &str) -> Result<String> {
        let what = format!("a release has the condition {condition}");
        until(&what, VERDICT_LIMIT, || {
            let list = self.list("releasepayloads")?;
            let found = list.into_iter().find(|payload| {
                let conditions = payload["status"]["conditions"].as_array();
                let mut conditions = conditions.into_iter().flatten();
                conditions.any(|it| it["type"] == condition && it["status"] == "True")
            });
            Ok(found.and_then(|it| it["metadata"]["name"].as_str().map(str::to_owned)))
        })
    }

    fn list(&self, kind: &str) -> Result<Vec<Value>> {
        let text = process::output(&mut self.kubectl(&["get", kind, "-o", "json"]))?;
        let list: Value = serde_json::from_str(&text)?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// The ProwJobs of a release.
    fn runs(&self, release: &str) -> Result<Vec<Run>> {
        let all = self.list("prowjobs")?;
        let ours = all
            .iter()
            .filter(|run| run["metadata"]["labels"]["release.openshift.io/payload"] == release);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(ours
            .map(|run| Run {
                name: text(&run["metadata"]["name"]),
                state: text(&run["status"]["state"]),
                pod: text(&run["status"]["pod_name"]),
                build: text(&run["status"]["build_id"]),
            })
            .collect())
    }

    /// The recorded facts of a release mean its verdict.
    fn agrees(&self, release: &str, phase: &str) -> Result<()> {
        let mut replay = self.neap(&["release", "replay", release, "-n", NAMESPACE]);
        let said = process::output(&mut replay)?;
        let wanted = format!("is {phase}, and the recorded facts mean the same");
        ensure!(said.contains(&wanted), "{said}");
        Ok(())
    }
}

/// Asks again and again until there is an answer; Prow must go on meanwhile.
fn until<T>(what: &str, limit: Duration, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
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

/// A port that nobody listens on now.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.port())
}
