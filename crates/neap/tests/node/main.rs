//! Pods as processes: a node at work on an API server in this process.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod bad;
mod faults;
mod hooks;
mod inside;
mod machine;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use machine::Machine;
use serde_json::json;
use std::fs;

fn exit_code(pod: &Pod) -> Option<i32> {
    let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    Some(status.state.as_ref()?.terminated.as_ref()?.exit_code)
}

#[tokio::test]
async fn a_pod_runs_to_its_end_and_what_it_printed_is_kept() {
    let machine = Machine::start().await;
    machine
        .run(
            "good",
            "echo from $POD_IP; hostname; cat /etc/hostname; exit 0",
            json!({}),
        )
        .await;
    machine
        .run("bad", "echo to be lost >&2; exit 3", json!({}))
        .await;
    let good = machine.phase("good", "Succeeded").await;
    let bad = machine.phase("bad", "Failed").await;
    assert_eq!((exit_code(&good), exit_code(&bad)), (Some(0), Some(3)));
    let address = good.status.as_ref().unwrap().pod_ip.clone().unwrap();
    assert!(address.starts_with("127.77.1."), "{address}");
    assert_eq!(
        machine.printed(&good),
        [
            format!("from {address}"),
            "good".to_owned(),
            "good".to_owned()
        ]
    );
    assert_eq!(machine.printed(&bad), ["to be lost"]);
}

#[tokio::test]
async fn volumes_follow_their_config_map() {
    let machine = Machine::start().await;
    let spec = json!({"spec": {
        "containers": [{"volumeMounts": [{"name": "config", "mountPath": "/etc/shop/config"}]}],
        "volumes": [{"name": "config", "configMap": {"name": "colours"}}],
    }});
    let script = "cat /etc/shop/config/wall; until grep -q red /etc/shop/config/wall; do sleep 0.02; done; echo seen";
    machine.run("painter", script, spec).await;
    let waits = |pod: &Pod| {
        let text = serde_json::to_string(&pod.status).unwrap();
        text.contains("configmap \\\"colours\\\" not found")
    };
    machine.when("painter", waits).await;
    let map = |colour: &str| -> ConfigMap {
        serde_json::from_value(
            json!({"metadata": {"name": "colours"}, "data": {"wall": format!("{colour}\n")}}),
        )
        .unwrap()
    };
    machine
        .maps
        .create(&PostParams::default(), &map("blue"))
        .await
        .unwrap();
    let running = machine.phase("painter", "Running").await;
    machine.prints(&running, "blue").await;
    let patch = Patch::Merge(json!({"data": {"wall": "red\n"}}));
    machine
        .maps
        .patch("colours", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let done = machine.phase("painter", "Succeeded").await;
    assert_eq!(machine.printed(&done), ["blue", "seen"]);
}

#[tokio::test]
async fn a_pod_that_is_deleted_is_asked_to_end_and_then_gone() {
    let machine = Machine::start().await;
    let script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let pod = machine
        .run(
            "server",
            script,
            json!({"spec": {"restartPolicy": "Always"}}),
        )
        .await;
    machine.phase("server", "Running").await;
    machine
        .pods
        .delete("server", &DeleteParams::default())
        .await
        .unwrap();
    machine.gone(&pod).await;
    assert!(
        machine
            .pods
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn an_image_that_is_not_in_the_table_is_waited_for_in_plain_words() {
    let machine = Machine::start().await;
    let image = json!({"spec": {"containers": [{"image": "shop/cart:3"}]}});
    machine.run("cart", "true", image).await;
    let waits = |pod: &Pod| {
        let text = serde_json::to_string(&pod.status).unwrap();
        text.contains("ErrImageNeverPull") && text.contains("name = \\\"shop/cart\\\"")
    };
    machine.when("cart", waits).await;
}

#[tokio::test]
async fn probes_say_when_a_container_is_ready_and_when_it_is_sick() {
    let machine = Machine::start().await;
    let signs = machine.folder.path().join("signs");
    fs::create_dir(&signs).unwrap();
    let give = |sign: &str| fs::write(signs.join(sign), []).unwrap();
    let probe = |command: &[&str]| json!({"exec": {"command": command}, "periodSeconds": 1, "failureThreshold": 1});
    let probes = json!({"spec": {
        "restartPolicy": "Always",
        "volumes": [{"name": "signs", "hostPath": {"path": signs}}],
        "containers": [{
            "volumeMounts": [{"name": "signs", "mountPath": "/signs"}],
            "startupProbe": {"exec": {"command": ["test", "-f", "/signs/up"]}, "periodSeconds": 1, "failureThreshold": 60},
            "readinessProbe": probe(&["test", "-f", "/signs/ready"]),
            "livenessProbe": probe(&["test", "!", "-f", "/signs/sick"]),
        }],
    }});
    let script = "rm -f /signs/sick; trap 'exit 0' TERM; while :; do sleep 0.05; done";
    machine.run("patient", script, probes).await;
    // Started, ready, and how often it was started again.
    let status = |pod: &Pod| {
        let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
        Some((status.started?, status.ready, status.restart_count))
    };
    let is = async |expected| {
        machine
            .when("patient", |pod| status(pod) == Some(expected))
            .await
    };
    is((false, false, 0)).await;
    give("up");
    is((true, false, 0)).await;
    give("ready");
    is((true, true, 0)).await;
    give("sick");
    let restarted = is((true, true, 1)).await;
    let text = serde_json::to_string(&restarted.status).unwrap();
    assert!(text.contains("failed liveness probe"), "{text}");
}
