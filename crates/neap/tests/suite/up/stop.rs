//! The output of `neap up` while it stops.

use std::{
    fs::{self, File},
    process::Command,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{LogParams, PostParams},
    runtime::wait::{await_condition, conditions},
};
use serde_json::json;

use super::sandbox::Sandbox;
use crate::kube_client;

const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn containers_that_ignore_sigterm_are_reported_during_shutdown() {
    let sandbox = Sandbox::new();
    let neap = sandbox.up(&[]);
    let client = kube_client::connect(&neap.kubeconfig_path()).await;
    let pods: Api<Pod> = Api::default_namespaced(client);
    for name in ["one", "other"] {
        let script = "trap '' TERM; until test -e /tmp/probed; do sleep 0.1; done; echo deaf; while :; do sleep 1; done";
        // A running probe must not count as a container.
        let probe = ["sh", "-c", ": > /tmp/probed; exec sleep 1000"];
        let container = json!({
            "name": "main", "image": "busybox", "command": ["sh", "-c", script],
            "readinessProbe": {"exec": {"command": probe}, "timeoutSeconds": 1000},
        });
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": [container]}});
        let pod = serde_json::from_value(pod).unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
        let runs = await_condition(pods.clone(), name, conditions::is_pod_running());
        tokio::time::timeout(WAIT_TIMEOUT, runs)
            .await
            .unwrap()
            .unwrap();
        let mut polls = tokio::time::interval(Duration::from_millis(10));
        let deaf = async {
            while pods.logs(name, &LogParams::default()).await.unwrap() != "deaf\n" {
                polls.tick().await;
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, deaf).await.unwrap();
    }
    // The containers are not in the process group of the terminal, so they do not get this signal.
    let end = neap.interrupt();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let lines: Vec<_> = end.stdout.lines().collect();
    assert_eq!(
        lines[0],
        "Stopping 2 containers; press Ctrl-C again to kill them."
    );
    assert_eq!(lines[1], "  waiting  2 containers have not stopped yet");
    assert_eq!(lines.last(), Some(&"Stopped."));
}

#[test]
fn messages_are_not_duplicated_if_stdout_and_stderr_are_one_file() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("both");
    let file = File::create(&path).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_neap"));
    let mut child = command
        .args(["up", "--bare", "--listen", "127.0.0.1:0"])
        .env("TMPDIR", sandbox.temporary())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let text = || fs::read_to_string(&path).unwrap();
    let mut polls = 0..3000;
    while !text().contains("\n  stop ") && polls.next().is_some() {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    let sent = Command::new("kill").arg(child.id().to_string()).status();
    assert!(sent.unwrap().success());
    assert!(child.wait().unwrap().success());
    let text = text();
    let ready = text
        .lines()
        .filter(|line| line.to_ascii_lowercase().contains("ready"));
    assert_eq!(ready.count(), 1, "{text}");
    assert!(text.ends_with("Stopped.\n"), "{text}");
}
