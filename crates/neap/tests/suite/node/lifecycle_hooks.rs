//! postStart and preStop hooks of containers.

use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::test_node::TestNode;

const SERVER: &str = "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.05; done";

fn hooks(lifecycle: &Value) -> Value {
    json!({"spec": {
        "restartPolicy": "Always",
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [{"lifecycle": lifecycle, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
    }})
}

fn shell(script: &str) -> Value {
    json!({"exec": {"command": ["sh", "-c", script]}})
}

fn is_ready(pod: &Pod) -> bool {
    let statuses = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref());
    statuses.is_some_and(|all| all.iter().all(|one| one.ready && one.started == Some(true)))
}

#[tokio::test]
async fn a_container_is_ready_after_its_post_start_hook() {
    let node = TestNode::start().await;
    // The hook waits for a file that the running container creates.
    let hook = shell("until test -e /v/answer; do sleep 0.02; done; echo done > /v/done");
    let script =
        "echo up; until test -e /v/question; do sleep 0.02; done; touch /v/answer; exec sleep 1000";
    let hook = json!({"postStart": hook});
    let pod = node.run("slow", script, hooks(&hook)).await;
    node.prints(&pod, "up").await;
    let running = node.phase("slow", "Running").await;
    assert!(!is_ready(&running));
    let volume = node
        .folder
        .path()
        .join("pods")
        .join(pod.metadata.uid.unwrap())
        .join("volumes/v");
    assert!(!volume.join("done").exists());
    std::fs::write(volume.join("question"), []).unwrap();
    node.when("slow", is_ready).await;
    assert!(volume.join("done").exists());
}

#[tokio::test]
async fn a_failed_post_start_hook_restarts_the_container() {
    let node = TestNode::start().await;
    let hook = json!({"postStart": shell("exit 4")});
    node.run("unlucky", SERVER, hooks(&hook)).await;
    let again = |pod: &Pod| {
        let text = serde_json::to_string(&pod.status).unwrap();
        text.contains("failed postStart hook") && !text.contains("\"restartCount\":0")
    };
    node.when("unlucky", again).await;
    node.has_event("unlucky", "FailedPostStartHook", "exit code 4")
        .await;
}

#[tokio::test]
async fn the_pre_stop_hook_runs_before_sigterm() {
    let node = TestNode::start().await;
    let files = node.folder.path().join("files");
    std::fs::create_dir(&files).unwrap();
    let content = |name: &str| std::fs::read_to_string(files.join(name)).unwrap_or_default();
    for (name, hook, expected) in [
        (
            "script",
            shell("echo hook >> /files/script"),
            "hook\nasked\n",
        ),
        ("sleep", json!({"sleep": {"seconds": 1}}), "asked\n"),
        ("unreachable", json!({"httpGet": {"port": 9}}), "asked\n"),
        // The hook uses up the grace period, and the container is killed.
        (
            "endless",
            shell("echo hook >> /files/endless; exec sleep 1000"),
            "hook\n",
        ),
    ] {
        let mut spec = hooks(&json!({"preStop": hook}));
        spec["spec"]["terminationGracePeriodSeconds"] = 2.into();
        spec["spec"]["volumes"][0] = json!({"name": "v", "hostPath": {"path": files}});
        spec["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] = "/files".into();
        let script = format!(
            "trap 'echo asked >> /files/{name}; exit 0' TERM; echo up; while :; do sleep 0.05; done"
        );
        let pod = node.run(name, &script, spec).await;
        node.prints(&pod, "up").await;
        node.when(name, is_ready).await;
        node.pods
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
        node.gone(&pod).await;
        assert_eq!(content(name), expected, "{name}");
    }
    node.has_event("unreachable", "FailedPreStopHook", "refused")
        .await;
}
