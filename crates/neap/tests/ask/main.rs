//! `neap explain`, `status`, `check` and `audit` as their users run them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod audit;
#[path = "../up/running.rs"]
#[expect(dead_code, reason = "other tests need more of it")]
mod running;

use std::{
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, Service},
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client, Config,
    api::{ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use running::Place;
use serde_json::{Value, json};

/// What `neap` says with this kubeconfig.
fn neap(place: &Place, kubeconfig: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_neap"))
        .args(arguments)
        .env_clear()
        .env("HOME", place.home())
        .env("TMPDIR", place.temporary())
        .env("PATH", "/usr/bin:/bin")
        .env("KUBECONFIG", kubeconfig)
        .output()
        .unwrap()
}

fn said(output: &Output) -> (Option<i32>, &str, &str) {
    let text = |bytes| str::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn json_of(output: &Output) -> Value {
    let (_, stdout, stderr) = said(output);
    serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

async fn client(kubeconfig: &Path) -> Client {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(file, &options).await;
    Client::try_from(config.unwrap()).unwrap()
}

/// A pod whose only container ends again and again, and a service that chooses it.
async fn crashing(kubeconfig: &Path) {
    let client = client(kubeconfig).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pod = json!({
        "metadata": {"name": "web-0", "labels": {"app": "web"}},
        "spec": {"nodeName": "moon", "containers": [{"name": "main", "image": "web:1"}]},
    });
    let pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let status = json!({"status": {"phase": "Running", "containerStatuses": [{
        "name": "main", "image": "web:1", "imageID": "", "ready": false, "restartCount": 7,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
        "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
    }]}});
    pods.patch_status("web-0", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    let services: Api<Service> = Api::default_namespaced(client);
    let service = json!({
        "metadata": {"name": "web"},
        "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 8080}]},
    });
    let service = serde_json::from_value(service).unwrap();
    services
        .create(&PostParams::default(), &service)
        .await
        .unwrap();
}

#[tokio::test]
async fn an_object_says_why_it_is_as_it_is() {
    let place = Place::new();
    let up = place.up(&[]);
    let kubeconfig = up.kubeconfig_path();
    crashing(&kubeconfig).await;
    for words in [
        &["explain", "pod/web-0"] as &[_],
        &["explain", "po", "web-0"],
    ] {
        let output = neap(&place, &kubeconfig, words);
        let (code, stdout, stderr) = said(&output);
        assert_eq!(code, Some(0), "{stderr}");
        for text in [
            "Pod default/web-0 is not as it should be",
            "the container main ends again and again (7 restarts): it ended with code 1",
            "kubectl logs -n default web-0 -c main --previous",
        ] {
            assert!(stdout.contains(text), "{text}: {stdout}");
        }
    }
    let json = json_of(&neap(
        &place,
        &kubeconfig,
        &["explain", "services/web", "-o", "json"],
    ));
    assert_eq!(json["kind"], "Explanation");
    assert_eq!(json["verdict"], "Troubled");
    assert_eq!(json["object"]["kind"], "Service");
    let why = |at: usize| json["why"][at].as_str().unwrap();
    assert!(why(0).starts_with("pod web-0: the container"), "{json}");
    assert!(why(1).starts_with("nobody answers behind it"), "{json}");
}

#[tokio::test]
async fn status_shows_what_is_not_well_and_ends_well() {
    let place = Place::new();
    let up = place.up(&[]);
    let kubeconfig = up.kubeconfig_path();
    crashing(&kubeconfig).await;
    let output = neap(&place, &kubeconfig, &["status"]);
    let (code, stdout, stderr) = said(&output);
    assert_eq!(code, Some(0), "{stderr}");
    for text in [
        &*up.kubeconfig().server,
        "Kubernetes v1.36.",
        "pod/web-0",
        "ends again and again",
        "service/web",
        "(node port 3",
        "neap explain pod/web-0 -n default",
    ] {
        assert!(stdout.contains(text), "{text}: {stdout}");
    }
    let elsewhere = neap(&place, &kubeconfig, &["status", "-n", "kube-system"]);
    assert!(!said(&elsewhere).1.contains("web-0"));
    let all = json_of(&neap(&place, &kubeconfig, &["status", "-A", "-o", "json"]));
    assert_eq!(all["pods"][0]["name"], "web-0");
    assert_eq!(all["kind"], "Status");
}

#[tokio::test]
async fn check_ends_with_one_if_something_failed() {
    let place = Place::new();
    let data = place.path("data");
    let up = place.up(&["--data", data.to_str().unwrap()]);
    let kubeconfig = up.kubeconfig_path();
    let arguments = ["check", "--data", data.to_str().unwrap()];
    let before = neap(&place, Path::new("/nowhere"), &arguments);
    let (code, stdout, stderr) = said(&before);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    for text in [
        "this machine",
        "namespaces",
        "open files",
        "the data folder",
        "a neap works with it",
        "the server",
        "you are admin",
        "the cluster",
    ] {
        assert!(stdout.contains(text), "{text}: {stdout}");
    }
    crashing(&kubeconfig).await;
    let after = neap(&place, &kubeconfig, &["check", "-o", "short", "--ascii"]);
    let (code, stdout, stderr) = said(&after);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(
        stdout.contains("x  pods") && stdout.contains("web-0"),
        "{stdout}"
    );
    assert!(!stdout.contains("credentials"), "{stdout}");
    assert!(stderr.contains("NT-CLI-0010"), "{stderr}");
    let json = json_of(&neap(&place, &kubeconfig, &["check", "-o", "json"]));
    assert_eq!(
        (&json["kind"], &json["ok"]),
        (&"Check".into(), &false.into())
    );
}

#[test]
fn a_data_folder_whose_server_is_stopped_is_checked_alone() {
    let place = Place::new();
    let data = place.path("data");
    let folder = data.to_str().unwrap();
    assert_eq!(place.up(&["--data", folder]).stop("TERM").code, Some(0));
    let check = neap(&place, Path::new(""), &["check", "--data", folder]);
    let (code, stdout, stderr) = said(&check);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(
        stdout.contains("not asked: no neap works with the data folder"),
        "{stdout}"
    );
}

#[test]
fn what_cannot_be_asked_says_why_with_an_exit_code() {
    let place = Place::new();
    let up = place.up(&[]);
    let (good, bad) = (up.kubeconfig_path(), place.path("bad"));
    let text = std::fs::read_to_string(&good).unwrap();
    let token = up.kubeconfig().token;
    std::fs::write(&bad, text.replace(&token, "none")).unwrap();
    let kept = place.path("kept");
    std::fs::copy(&good, &kept).unwrap();
    let torn = place.path("torn");
    std::fs::write(&torn, format!("users: [{{token: {token}")).unwrap();
    let table: [(&Path, &[&str], i32, &str); 10] = [
        (&bad, &["status"], 4, "NT-CLI-0004"),
        (Path::new("/nowhere"), &["status"], 6, "NT-CLI-0002"),
        (
            Path::new("/nowhere"),
            &["status"],
            6,
            "names /nowhere, and there is no such file",
        ),
        (
            &good,
            &["status", "--kubeconfig", "/nope"],
            3,
            "there is no kubeconfig /nope",
        ),
        (&torn, &["status"], 6, "torn cannot be used"),
        (&good, &["status", "--context", "moon"], 6, "NT-CLI-0002"),
        (&good, &["explain", "pod/none"], 3, "NT-CLI-0008"),
        (&good, &["explain", "boat/tug"], 3, "NT-CLI-0007"),
        (&good, &["explain", "NT-UP-001"], 2, "NT-UP-0001"),
        (&good, &["explain", "pod"], 2, "KIND/NAME"),
    ];
    for (kubeconfig, arguments, code, text) in table {
        let output = neap(&place, kubeconfig, arguments);
        let (found, stdout, stderr) = said(&output);
        assert_eq!(found, Some(code), "{arguments:?} {stderr}");
        assert!(stderr.contains(text), "{arguments:?} {stderr}");
        assert_eq!(stdout, "", "{arguments:?}");
        assert!(!stderr.contains(&token), "{arguments:?} {stderr}");
    }
    assert_eq!(up.stop("TERM").code, Some(0));
    let output = neap(&place, &kept, &["status"]);
    let (code, _, stderr) = said(&output);
    assert_eq!(code, Some(7), "{stderr}");
    assert!(stderr.contains("NT-CLI-0003"), "{stderr}");
    let check = neap(
        &place,
        &kept,
        &["check", "--kubeconfig", kept.to_str().unwrap()],
    );
    assert_eq!(said(&check).0, Some(1));
}

#[test]
fn a_code_is_explained_without_a_server() {
    let place = Place::new();
    let nowhere = Path::new("/nowhere");
    let output = neap(&place, nowhere, &["explain", "nt-up-0010"]);
    let (code, stdout, _) = said(&output);
    assert_eq!(code, Some(0));
    assert!(
        stdout.starts_with("NT-UP-0010  worker threads cannot be started"),
        "{stdout}"
    );
    for part in ["Why ", "Do ", "Retry "] {
        assert!(stdout.contains(part), "{stdout}");
    }
    let json = json_of(&neap(
        &place,
        nowhere,
        &["explain", "NT-KIT-010", "-o", "json"],
    ));
    assert_eq!(
        (&json["kind"], &json["retry"]),
        (&"Code".into(), &"Never".into())
    );
    let all = neap(&place, nowhere, &["explain"]);
    let (code, stdout, _) = said(&all);
    assert_eq!(code, Some(0));
    for line in [
        "NT-UP-0010   worker threads cannot be started",
        "NT-CLI-0001  nobody takes the output",
    ] {
        assert!(stdout.lines().any(|one| one == line), "{line}: {stdout}");
    }
    let json = json_of(&neap(&place, nowhere, &["explain", "-o", "json"]));
    assert!(json["codes"].as_array().unwrap().len() > 20, "{json}");
}

#[tokio::test]
async fn what_one_may_not_read_is_not_said_to_be_missing() {
    let place = Place::new();
    let up = place.up(&[]);
    let kubeconfig = up.kubeconfig_path();
    crashing(&kubeconfig).await;
    let client = client(&kubeconfig).await;
    let roles: Api<Role> = Api::default_namespaced(client.clone());
    let role = json!({"metadata": {"name": "some"}, "rules": [
        {"apiGroups": ["", "discovery.k8s.io"], "resources": ["services", "endpointslices"], "verbs": ["get", "list"]},
    ]});
    let role = serde_json::from_value(role).unwrap();
    roles.create(&PostParams::default(), &role).await.unwrap();
    let bindings: Api<RoleBinding> = Api::default_namespaced(client);
    let binding = json!({
        "metadata": {"name": "some"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "some"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}],
    });
    let binding = serde_json::from_value(binding).unwrap();
    let created = bindings.create(&PostParams::default(), &binding).await;
    created.unwrap();
    let eves = place.path("eves");
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    std::fs::write(
        &eves,
        text.replacen("    token:", "    as: eve\n    token:", 1),
    )
    .unwrap();

    let service = neap(&place, &eves, &["explain", "service/web"]);
    let (code, stdout, stderr) = said(&service);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("you may not read Pods"), "{stdout}");
    assert!(stdout.contains("Unseen   Pod, "), "{stdout}");
    assert!(!stdout.contains("no pod"), "{stdout}");
    let status = neap(&place, &eves, &["status", "--ascii"]);
    let (_, stdout, _) = said(&status);
    assert!(
        stdout.contains("Pods that are not well\n  !  you may not read: Pod\n"),
        "{stdout}"
    );
    assert!(!stdout.contains("Workloads in default\n  none"), "{stdout}");
}

#[tokio::test]
async fn a_deployment_that_crashes_says_what_its_pods_do() {
    let place = Place::new();
    let up = place.up(&[]);
    let kubeconfig = up.kubeconfig_path();
    let client = client(&kubeconfig).await;
    let container = json!({"name": "main", "image": "busybox", "command": ["sh", "-c", "exit 3"]});
    let deployment = json!({
        "metadata": {"name": "crash"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "crash"}},
            "template": {"metadata": {"labels": {"app": "crash"}}, "spec": {"containers": [container]}},
        },
    });
    let deployment: Deployment = serde_json::from_value(deployment).unwrap();
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments
        .create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client);
    all_crash(&pods, 2).await;
    let output = neap(&place, &kubeconfig, &["explain", "deploy/crash"]);
    let (code, stdout, stderr) = said(&output);
    assert_eq!(code, Some(0), "{stderr}");
    for text in [
        "Deployment default/crash is not as it should be",
        "0 of 2 pods are ready",
        "(and 1 other likewise): the container main ends again and again (",
        "it ended with code 3",
        "--previous",
    ] {
        assert!(stdout.contains(text), "{text}: {stdout}");
    }
    let check = neap(&place, &kubeconfig, &["check", "-o", "short"]);
    assert_eq!(said(&check).0, Some(1));
}

/// Resolves once so many pods wait to be started for the second time.
async fn all_crash(pods: &Api<Pod>, count: usize) {
    let waits = |pod: &&Pod| {
        let status = pod
            .status
            .as_ref()
            .and_then(|status| status.container_statuses.as_ref());
        let first = status.and_then(|all| all.first());
        first.is_some_and(|one| {
            let waiting = one.state.as_ref().and_then(|state| state.waiting.as_ref());
            one.restart_count >= 1 && waiting.is_some()
        })
    };
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    let crashed = async {
        while pods
            .list(&ListParams::default())
            .await
            .unwrap()
            .iter()
            .filter(waits)
            .count()
            < count
        {
            looks.tick().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_mins(1), crashed).await;
    assert!(waited.is_ok(), "the pods do not crash");
}
