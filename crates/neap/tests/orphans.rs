//! Nothing of a pod is left when `neap up` is killed, whatever its pods were doing.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config,
    api::{DeleteParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;

const PODS: usize = 3;
/// What may be left at most for this long.
const LATEST: Duration = Duration::from_secs(1);

/// What the pods are doing when the end comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Starting,
    Running,
    Stopping,
}

/// A `neap up` and the way to its pods.
async fn up(folder: &Path) -> (Child, Api<Pod>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_neap"))
        .args(["up", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let path = lines.find_map(|line| {
        let line = line.unwrap();
        line.split_once("KUBECONFIG=")
            .map(|(_, path)| path.to_owned())
    });
    let kubeconfig = Kubeconfig::read_from(path.unwrap()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let client = Client::try_from(config.unwrap()).unwrap();
    (child, Api::default_namespaced(client))
}

/// Kills `neap up` at a moment, and says who is left.
async fn left_after(moment: Moment, marker: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, pods) = up(&folder.path().join("data")).await;
    // It does not end when it is asked to.
    let script = format!("trap '' TERM; (sleep {marker} &); while :; do sleep {marker}; done");
    for name in ["a", "b", "c"] {
        let pod = json!({
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "main", "image": "busybox", "command": ["sh", "-c", script]}]},
        });
        let pod = serde_json::from_value(pod).unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
    }
    if moment == Moment::Starting {
        until("one starts", || !processes(marker).is_empty()).await;
    } else {
        let sleeping = || {
            processes(marker)
                .iter()
                .filter(|name| *name == marker)
                .count()
        };
        until("all run", || sleeping() == 2 * PODS).await;
    }
    if moment == Moment::Stopping {
        for name in ["a", "b", "c"] {
            pods.delete(name, &DeleteParams::default()).await.unwrap();
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let ended = until("all have ended", || processes(marker).is_empty());
    // Whoever is still there when this is over is named by the test.
    let _ = tokio::time::timeout(LATEST, ended).await;
    processes(marker)
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(1));
    for _ in 0..60_000 {
        if is_so() {
            return;
        }
        looks.tick().await;
    }
    panic!("still not so: {what}");
}

/// Launchers of this program, and processes that have `marker` as an argument.
fn processes(marker: &str) -> Vec<String> {
    let neap = fs::canonicalize(env!("CARGO_BIN_EXE_neap")).unwrap();
    let all = fs::read_dir("/proc").unwrap().flatten();
    let found = all.filter_map(|process| {
        let command = fs::read(process.path().join("cmdline")).ok()?;
        let words: Vec<String> = command
            .split(|&byte| byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        if words.iter().any(|word| word == marker) {
            return Some(marker.to_owned());
        }
        let program = fs::read_link(process.path().join("exe")).ok()?;
        (program == neap && words.get(1)? == "launch").then(|| words.join(" "))
    });
    found.collect()
}

#[tokio::test]
async fn nothing_of_a_pod_outlives_a_killed_neap_up() {
    let marker = format!("86403.{}", std::process::id());
    for moment in [Moment::Starting, Moment::Running, Moment::Stopping] {
        let left = left_after(moment, &marker).await;
        assert!(left.is_empty(), "{moment:?}: {left:?}");
    }
}
