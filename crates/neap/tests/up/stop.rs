//! What is said while pods end, and what is said once only.

use std::{
    fs::{self, File},
    process::Command,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config,
    api::{LogParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::wait::{await_condition, conditions},
};
use serde_json::json;

use crate::running::Place;

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn pods_that_take_their_time_are_told_of_while_they_do() {
    let place = Place::new();
    let neap = place.up(&[]);
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(neap.kubeconfig_path()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let pods: Api<Pod> = Api::default_namespaced(Client::try_from(config.unwrap()).unwrap());
    for name in ["one", "other"] {
        let script = "trap '' TERM; echo deaf; while :; do sleep 1; done";
        let container =
            json!({"name": "main", "image": "busybox", "command": ["sh", "-c", script]});
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": [container]}});
        let pod = serde_json::from_value(pod).unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
        let runs = await_condition(pods.clone(), name, conditions::is_pod_running());
        tokio::time::timeout(LIMIT, runs).await.unwrap().unwrap();
        let mut looks = tokio::time::interval(Duration::from_millis(10));
        let deaf = async {
            while pods.logs(name, &LogParams::default()).await.unwrap() != "deaf\n" {
                looks.tick().await;
            }
        };
        tokio::time::timeout(LIMIT, deaf).await.unwrap();
    }
    // The shell would end by the signal of the terminal, which it does not hear.
    let end = neap.interrupt();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let lines: Vec<_> = end.stdout.lines().collect();
    assert_eq!(
        lines[0],
        "Stopping 2 containers; Ctrl-C again ends all at once."
    );
    assert_eq!(lines[1], "  waiting  2 containers have not ended yet");
    assert_eq!(lines.last(), Some(&"Stopped."));
}

#[test]
fn what_is_printed_and_logged_to_one_file_is_there_once() {
    let place = Place::new();
    let path = place.path("both");
    let file = File::create(&path).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_neap"));
    let mut child = command
        .args(["up", "--bare", "--listen", "127.0.0.1:0"])
        .env("TMPDIR", place.temporary())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let text = || fs::read_to_string(&path).unwrap();
    let mut looks = 0..3000;
    while !text().contains("\n  stop ") && looks.next().is_some() {
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
