//! What containers want done after their start and before their end.

use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::machine::Machine;

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
async fn what_follows_a_start_is_done_before_a_container_is_ready() {
    let machine = Machine::start().await;
    // It goes on when the container, which runs already, has answered.
    let hook = shell("until test -e /v/answer; do sleep 0.02; done; echo done > /v/done");
    let script =
        "echo up; until test -e /v/question; do sleep 0.02; done; touch /v/answer; exec sleep 1000";
    let hook = json!({"postStart": hook});
    let pod = machine.run("slow", script, hooks(&hook)).await;
    machine.prints(&pod, "up").await;
    let running = machine.phase("slow", "Running").await;
    assert!(!is_ready(&running));
    let volume = machine
        .folder
        .path()
        .join("pods")
        .join(pod.metadata.uid.unwrap())
        .join("volumes/v");
    assert!(!volume.join("done").exists());
    std::fs::write(volume.join("question"), []).unwrap();
    machine.when("slow", is_ready).await;
    assert!(volume.join("done").exists());
}

#[tokio::test]
async fn a_container_whose_start_is_not_followed_by_what_it_wants_is_started_again() {
    let machine = Machine::start().await;
    let hook = json!({"postStart": shell("exit 4")});
    machine.run("unlucky", SERVER, hooks(&hook)).await;
    let again = |pod: &Pod| {
        let text = serde_json::to_string(&pod.status).unwrap();
        text.contains("failed postStart hook") && !text.contains("\"restartCount\":0")
    };
    machine.when("unlucky", again).await;
    machine
        .told("unlucky", "FailedPostStartHook", "exit code 4")
        .await;
}

#[tokio::test]
async fn what_precedes_an_end_is_done_before_a_container_is_asked() {
    let machine = Machine::start().await;
    let signs = machine.folder.path().join("signs");
    std::fs::create_dir(&signs).unwrap();
    let sign = |name: &str| std::fs::read_to_string(signs.join(name)).unwrap_or_default();
    for (name, hook, expected) in [
        (
            "script",
            shell("echo hook >> /signs/script"),
            "hook\nasked\n",
        ),
        ("sleep", json!({"sleep": {"seconds": 1}}), "asked\n"),
        ("nobody", json!({"httpGet": {"port": 9}}), "asked\n"),
        // It takes all the time there is, and the container is killed.
        (
            "endless",
            shell("echo hook >> /signs/endless; exec sleep 1000"),
            "hook\n",
        ),
    ] {
        let mut spec = hooks(&json!({"preStop": hook}));
        spec["spec"]["terminationGracePeriodSeconds"] = 2.into();
        spec["spec"]["volumes"][0] = json!({"name": "v", "hostPath": {"path": signs}});
        spec["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] = "/signs".into();
        let script = format!(
            "trap 'echo asked >> /signs/{name}; exit 0' TERM; echo up; while :; do sleep 0.05; done"
        );
        let pod = machine.run(name, &script, spec).await;
        machine.prints(&pod, "up").await;
        machine.when(name, is_ready).await;
        machine
            .pods
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
        machine.gone(&pod).await;
        assert_eq!(sign(name), expected, "{name}");
    }
    machine.told("nobody", "FailedPreStopHook", "refused").await;
}
