//! A node that runs pods as processes, with an API server in this process.

mod api_errors;
mod failing_pods;
mod lifecycle_hooks;
mod pod_environment;
mod test_node;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::fs;
use test_node::{TestNode, merge};

fn exit_code(pod: &Pod) -> Option<i32> {
    let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    Some(status.state.as_ref()?.terminated.as_ref()?.exit_code)
}

#[tokio::test]
async fn a_pod_runs_to_completion_and_its_output_is_kept() {
    let node = TestNode::start().await;
    node.run(
        "good",
        "echo from $POD_IP; hostname; cat /etc/hostname; exit 0",
        json!({}),
    )
    .await;
    node.run("bad", "echo to be lost >&2; exit 3", json!({}))
        .await;
    let good = node.phase("good", "Succeeded").await;
    let bad = node.phase("bad", "Failed").await;
    assert_eq!((exit_code(&good), exit_code(&bad)), (Some(0), Some(3)));
    let address = good.status.as_ref().unwrap().pod_ip.clone().unwrap();
    assert!(address.starts_with("127.77.1."), "{address}");
    assert_eq!(
        node.printed(&good),
        [
            format!("from {address}"),
            "good".to_owned(),
            "good".to_owned()
        ]
    );
    assert_eq!(node.printed(&bad), ["to be lost"]);
}

#[tokio::test]
async fn volumes_follow_changes_of_their_config_map() {
    let node = TestNode::start().await;
    let spec = json!({"spec": {
        "containers": [{"volumeMounts": [{"name": "config", "mountPath": "/etc/shop/config"}]}],
        "volumes": [{"name": "config", "configMap": {"name": "colours"}}],
    }});
    let script = "cat /etc/shop/config/wall; until grep -q red /etc/shop/config/wall; do sleep 0.02; done; echo seen";
    node.run("painter", script, spec).await;
    let waits = |pod: &Pod| {
        let text = serde_json::to_string(&pod.status).unwrap();
        text.contains("configmap \\\"colours\\\" not found")
    };
    node.when("painter", waits).await;
    let map = |colour: &str| -> ConfigMap {
        serde_json::from_value(
            json!({"metadata": {"name": "colours"}, "data": {"wall": format!("{colour}\n")}}),
        )
        .unwrap()
    };
    node.maps
        .create(&PostParams::default(), &map("blue"))
        .await
        .unwrap();
    let running = node.phase("painter", "Running").await;
    node.prints(&running, "blue").await;
    let patch = Patch::Merge(json!({"data": {"wall": "red\n"}}));
    node.maps
        .patch("colours", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let done = node.phase("painter", "Succeeded").await;
    assert_eq!(node.printed(&done), ["blue", "seen"]);
}

#[tokio::test]
async fn a_deleted_pod_gets_sigterm_and_is_removed() {
    let node = TestNode::start().await;
    let script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let pod = node
        .run(
            "server",
            script,
            json!({"spec": {"restartPolicy": "Always"}}),
        )
        .await;
    node.phase("server", "Running").await;
    node.pods
        .delete("server", &DeleteParams::default())
        .await
        .unwrap();
    node.gone(&pod).await;
    assert!(
        node.pods
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn an_image_missing_in_the_table_is_reported() {
    let node = TestNode::start().await;
    let image = json!({"spec": {"containers": [{"image": "shop/cart:3"}]}});
    node.run("cart", "true", image).await;
    let waits = |pod: &Pod| {
        let text = serde_json::to_string(&pod.status).unwrap();
        text.contains("ErrImageNeverPull") && text.contains("name = \\\"shop/cart\\\"")
    };
    node.when("cart", waits).await;
}

#[tokio::test]
async fn a_restricted_node_refuses_root_and_paths_of_the_machine() {
    let node = TestNode::restricted().await;
    let user = json!({"securityContext": {"runAsUser": 1000, "runAsGroup": 1000}});
    let merged = |mut pod: Value, more: Value| {
        merge(&mut pod, more);
        pod
    };
    let host_path =
        |path: &str| json!({"volumes": [{"name": "machine", "hostPath": {"path": path}}]});
    // As a container could make one in the folder of its claim.
    let link = node.folder.path().join("volumes/default_data_1/link");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/etc", &link).unwrap();
    let root = "container \\\"main\\\" would run as root, which this node refuses (--restricted)";
    let path = "volume \\\"machine\\\": this node refuses paths of the machine (--restricted)";
    for (name, spec, refused) in [
        ("no-user", json!({}), root),
        (
            "root",
            json!({"securityContext": {"runAsUser": 0, "runAsGroup": 1000}}),
            root,
        ),
        (
            "root-of-its-own",
            merged(
                user.clone(),
                json!({"containers": [{"securityContext": {"runAsUser": 0}}]}),
            ),
            root,
        ),
        ("etc", merged(user.clone(), host_path("/etc")), path),
        (
            "link",
            merged(user.clone(), host_path(link.to_str().unwrap())),
            path,
        ),
    ] {
        node.run(name, "true", json!({"spec": spec})).await;
        let waits = |pod: &Pod| {
            serde_json::to_string(&pod.status)
                .unwrap()
                .contains(refused)
        };
        node.when(name, waits).await;
    }
    // What needs neither runs.
    let volumes = json!({"volumes": [{"name": "own", "emptyDir": {}}]});
    let allowed = json!({"spec": merged(user, volumes)});
    node.run("allowed", "test $(id -u) = 1000", allowed).await;
    node.phase("allowed", "Succeeded").await;
}

#[tokio::test]
async fn probes_decide_readiness_and_restarts() {
    let node = TestNode::start().await;
    let files = node.folder.path().join("files");
    fs::create_dir(&files).unwrap();
    let create = |name: &str| fs::write(files.join(name), []).unwrap();
    let probe = |command: &[&str]| json!({"exec": {"command": command}, "periodSeconds": 1, "failureThreshold": 1});
    let probes = json!({"spec": {
        "restartPolicy": "Always",
        "volumes": [{"name": "files", "hostPath": {"path": files}}],
        "containers": [{
            "volumeMounts": [{"name": "files", "mountPath": "/files"}],
            "startupProbe": {"exec": {"command": ["test", "-f", "/files/up"]}, "periodSeconds": 1, "failureThreshold": 60},
            "readinessProbe": probe(&["test", "-f", "/files/ready"]),
            "livenessProbe": probe(&["test", "!", "-f", "/files/sick"]),
        }],
    }});
    let script = "rm -f /files/sick; trap 'exit 0' TERM; while :; do sleep 0.05; done";
    node.run("patient", script, probes).await;
    // Started, ready, and the number of restarts.
    let status = |pod: &Pod| {
        let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
        Some((status.started?, status.ready, status.restart_count))
    };
    let is = async |expected| {
        node.when("patient", |pod| status(pod) == Some(expected))
            .await
    };
    is((false, false, 0)).await;
    create("up");
    is((true, false, 0)).await;
    create("ready");
    is((true, true, 0)).await;
    create("sick");
    let restarted = is((true, true, 1)).await;
    let text = serde_json::to_string(&restarted.status).unwrap();
    assert!(text.contains("failed liveness probe"), "{text}");
}
